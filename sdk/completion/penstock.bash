# Completion of `penstock` for bash: subcommands and options come from the tool's own help.
_penstock() {
  local current=${COMP_WORDS[COMP_CWORD]} tool=${COMP_WORDS[0]} path=() i
  for ((i = 1; i < COMP_CWORD; ++i)); do
    [[ ${COMP_WORDS[i]} == -- ]] && { _command_offset $((i + 1)) 2>/dev/null; return; }
    [[ ${COMP_WORDS[i]} =~ ^[a-z]+$ && ${#path[@]} -lt 2 ]] && path+=("${COMP_WORDS[i]}")
    [[ ${path[0]} != pool && ${#path[@]} -eq 1 ]] && break
  done
  local help words
  help=$("$tool" "${path[@]}" --help 2>/dev/null) || return
  if [[ $current == -* ]]; then
    words=$(grep -oE -- '--[a-z][a-z_-]*' <<<"$help" | sort -u)
  elif [[ ${path[0]} == perf || ${path[0]} == plan ]] && ((${#path[@]} == 1)); then
    words="all_reduce broadcast reduce all_gather reduce_scatter all_to_all gather scatter
           send_recv barrier"
  else
    words=$(sed -n '/^Subcommands:/,/^$/s/^  \([a-z]*\) .*/\1/p' <<<"$help")
  fi
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
  ((${#COMPREPLY[@]})) || mapfile -t COMPREPLY < <(compgen -f -- "$current")
}
complete -F _penstock penstock
