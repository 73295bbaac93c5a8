/* SPDX-License-Identifier: MIT */
#ifndef CUDAFS_FS_KEEPER_PRIVATE_H
#define CUDAFS_FS_KEEPER_PRIVATE_H

/* The keeper's state, shared by its parts: keeper.c (life of the mount), nursery.c (workers), spare.c
 * (the next keeper), doorman.c (control socket). */

#include <stdbool.h>

#include "fs/control.h"
#include "fs/keeper.h"
#include "fs/mount.h"
#include "fs/registry.h"
#include "fs/sandbox.h"
#include "fs/state.h"

#define CFS_CLIENTS_MAX 8
#define CFS_DEATHS_MAX  64

#define CFS_MS UINT64_C(1000000)

/* All that a client has opened here stands in it, so that children forked while it is being answered can
 * close it: a copy left in one of them would keep the client waiting after the keeper's death. */
struct cfs_client {
  int socket; /* -1: free */
  int fds[2];
  uint64_t deadline;
};

#define CFS_CLIENT_NONE ((struct cfs_client){.socket = -1, .fds = {-1, -1}})

/* How many workers died while they held this request. */
struct cfs_death {
  uint64_t unique;
  unsigned count;
};

struct cfs_keeper {
  const struct cfs_keeper_setup *setup;
  cfs_mount mount;
  struct cfs_mount_options options;
  cfs_registry registry;
  struct cfs_shared *shared;
  cfs_sandbox sandbox;
  cfs_state state;
  void *init;
  size_t init_size;
  uint32_t open_files;
  int64_t started;
  int signals, listener;

  pid_t worker; /* 0: none */
  int worker_ready;
  uint64_t worker_start, next_start;
  unsigned quick_deaths;
  struct cfs_death deaths[CFS_DEATHS_MAX];
  uint64_t next_check, last_taken, quiet_since;

  int lock; /* who holds it is the keeper */
  pid_t spare;
  uint64_t spare_due, succession;
  pid_t prober, warmer;
  struct cfs_client clients[CFS_CLIENTS_MAX];
  bool announced, stopping, done;
  int result;
  char *why; /* of result */
};

/* nursery.c */
void cfs_nursery_start(struct cfs_keeper *k);           /* forks a worker, or sees that the mount is gone */
int cfs_nursery_await(struct cfs_keeper *k, int ms);    /* until it serves; -ETIMEDOUT, -EPIPE: it died */
void cfs_nursery_bury(struct cfs_keeper *k, bool ours); /* the worker is dead; ours: we killed it on purpose */
void cfs_nursery_kill(struct cfs_keeper *k);            /* and wait for it, on purpose */
void cfs_nursery_check(struct cfs_keeper *k);           /* kills a worker that hangs */

/* spare.c */
int cfs_spare_prepare(struct cfs_keeper *k);
void cfs_spare_start(struct cfs_keeper *k);   /* forks one if it is due */
void cfs_spare_replace(struct cfs_keeper *k); /* by one that knows the current registry */
void cfs_spare_bury(struct cfs_keeper *k);    /* it is dead */
void cfs_spare_end(struct cfs_keeper *k);

/* doorman.c */
void cfs_doorman_accept(struct cfs_keeper *k);
void cfs_doorman_answer(struct cfs_keeper *k, struct cfs_client *client);
void cfs_doorman_dismiss(struct cfs_client *client);
void cfs_doorman_dismiss_all(struct cfs_keeper *k);

/* keeper.c */
void cfs_keeper_close_private(struct cfs_keeper *k); /* in a child: what only the keeper itself uses */
void cfs_keeper_end_helpers(struct cfs_keeper *k);
int cfs_keeper_live(struct cfs_keeper *k); /* until the mount is gone, then cleans up; returns the result */
int cfs_keeper_reload(struct cfs_keeper *k, int tree_fd, const void *label, size_t label_size, char **ret_why);

#endif
