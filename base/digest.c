/* SPDX-License-Identifier: MIT */
#include "base/digest.h"

#include <errno.h>
#include <openssl/evp.h>

int cfs_digest(const void *data, size_t size, char ret[CFS_DIGEST_TEXT])
{
  unsigned char raw[EVP_MAX_MD_SIZE];
  unsigned n = 0;
  if (!EVP_Digest(data, size, raw, &n, EVP_sha256(), NULL) || n != 32)
    return -EIO;
  for (unsigned i = 0; i < n; i++) {
    ret[2 * i] = "0123456789abcdef"[raw[i] >> 4];
    ret[2 * i + 1] = "0123456789abcdef"[raw[i] & 15];
  }
  ret[64] = '\0';
  return 0;
}
