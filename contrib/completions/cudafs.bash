# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2207
_cudafs()
{
  local cur=${COMP_WORDS[COMP_CWORD]} command=${COMP_WORDS[1]}
  if ((COMP_CWORD == 1)); then
    COMPREPLY=($(compgen -W "mount umount reload status scan plan doctor verify explain env --help --version" -- "$cur"))
    return
  fi
  if [[ $cur == -* ]]; then
    local options="--help"
    case $command in
      mount) options+=" --foreground --options --quiet" ;;
      umount) options+=" --lazy" ;;
      reload) options+=" --now --wait --json" ;;
      plan) options+=" --files --json" ;;
      verify) options+=" --target --keep --json" ;;
      doctor) options+=" --for --json" ;;
      status | scan | explain | env) options+=" --json" ;;
    esac
    COMPREPLY=($(compgen -W "$options" -- "$cur"))
    return
  fi
  case $command in
    umount | reload | status | env)
      COMPREPLY=($(compgen -W "$(awk '$3 ~ /^fuse\.?cudafs/ { print $2 }' /proc/self/mounts 2>/dev/null)" -- "$cur"))
      ;;
  esac
  COMPREPLY+=($(compgen -f -- "$cur"))
}
complete -o filenames -F _cudafs cudafs
