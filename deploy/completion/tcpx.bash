# Completion for bash: the options that a command's --help names, else files. It knows no option itself.
_tcpx() {
  local word=${COMP_WORDS[COMP_CWORD]}
  COMPREPLY=()
  if [[ $word == -* ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$("$1" --help 2>/dev/null | grep -oE -- '--[a-z][a-z-]*' | sort -u)" -- "$word")
  else
    mapfile -t COMPREPLY < <(compgen -f -- "$word")
  fi
}
complete -F _tcpx tcpx_doctor tcpx_top tcpx_trace_merge net_bench rma_bench
