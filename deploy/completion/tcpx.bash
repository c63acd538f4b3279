# Completion for bash: the options that a command's --help lists, else files. It knows no option itself.

# Options are in the usage, and in front of the texts that say what they do: there two spaces end them.
_tcpx_options() {
  "$1" --help 2>/dev/null | sed -nE '/^usage:/,/^$/{p;d}; s/^  (-[^ ]+( [^ ]+)*).*/\1/p' |
    grep -oE -- '--[a-z][a-z-]*' | sort -u
}

_tcpx() {
  local word=${COMP_WORDS[COMP_CWORD]}
  COMPREPLY=()
  if [[ $word == -* ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$(_tcpx_options "$1")" -- "$word")
  elif [[ ${1##*/} == tcpx_default ]]; then
    mapfile -t COMPREPLY < <(compgen -W "on off status" -- "$word")
  else
    mapfile -t COMPREPLY < <(compgen -f -- "$word")
  fi
}
complete -F _tcpx tcpx_doctor tcpx_top tcpx_trace_merge tcpx_default net_bench rma_bench
