# Read by run.sh: is what NVML said what nvidia-smi says? Both ask the same library, by ways of their own.

# The value of a GPU's field in a recording, which serde_json has laid out: a GPU's fields stand eight blanks deep.
said() { # RECORDING INDEX FIELD
  awk -v wanted="$2" -v field="\"$3\":" '
    /^      {$/ { gpu++ }
    gpu == wanted + 1 && /^        "/ && $1 == field { sub(/^ *"[^"]*": */, ""); sub(/,$/, ""); gsub(/^"|"$/, ""); print; exit }
  ' "$1"
}

# The same of an object in it, ten blanks deep.
said_in() { # RECORDING INDEX OBJECT FIELD
  awk -v wanted="$2" -v object="\"$3\":" -v field="\"$4\":" '
    /^      {$/ { gpu++ }
    gpu == wanted + 1 && /^        "/ { inside = $1 == object }
    gpu == wanted + 1 && inside && /^          "/ && $1 == field { sub(/^ *"[^"]*": */, ""); sub(/,$/, ""); gsub(/^"|"$/, ""); print; exit }
  ' "$1"
}

# nvidia-smi's word for a field in NVML's; empty: it has none.
smi() { # INDEX FIELD
  local word
  word=$(timeout 60 nvidia-smi -i "$1" --query-gpu="$2" --format=csv,noheader,nounits 2>/dev/null) || word=
  case $word in
    '[N/A]' | 'N/A' | '[Not Supported]' | '[Unknown Error]' | *"not a valid field"*) word= ;;
  esac
  case $2 in
    pci.bus_id) word=$(tr '[:upper:]' '[:lower:]' <<<"$word") && word=${word/#0000/} ;;
    persistence_mode | mig.mode.current) [ "$word" != Enabled ] || word=true; [ "$word" != Disabled ] || word=false ;;
    retired_pages.pending) [ "$word" != Yes ] || word=true; [ "$word" != No ] || word=false ;;
    compute_mode) word=$(tr '[:upper:]' '[:lower:]' <<<"$word") && word=${word%_process} ;;
    fabric.state) word=$(tr '[:upper:] ' '[:lower:]-' <<<"$word") ;;
  esac
  printf '%s' "$word"
}

# One line for each field that differs; fails if there is one. What a field of memory may have moved by meanwhile, in MiB,
# stands behind it. Where one of the two does not tell, they do not differ: old ones of either know less.
compare() { # RECORDING
  local file=$1 count index pair field ours theirs slack wrong=0 compared=0
  count=$(timeout 60 nvidia-smi --query-gpu=index --format=csv,noheader | wc -l)
  ours=$(grep -c '^      {$' "$file" || true)
  if [ "$count" -ne "$ours" ]; then
    echo "nvidia-smi counts $count GPUs, NVML said $ours"
    return 1
  fi
  for ((index = 0; index < count; index++)); do
    for pair in index=index uuid=uuid name=name pci=pci.bus_id persistent=persistence_mode compute_mode=compute_mode \
      compute_capability=compute_cap mig=mig.mode.current uncorrectable=ecc.errors.uncorrected.volatile.total \
      retirement_pending=retired_pages.pending fabric/state=fabric.state \
      memory=memory.total:1 memory_reserved=memory.reserved:1 memory_free=memory.free:1024; do
      field=${pair%%=*} theirs=${pair#*=} slack=
      [[ $theirs != *:* ]] || { slack=${theirs#*:} theirs=${theirs%:*}; }
      case $field in
        */*) ours=$(said_in "$file" "$index" "${field%/*}" "${field#*/}") ;;
        *) ours=$(said "$file" "$index" "$field") ;;
      esac
      theirs=$(smi "$index" "$theirs")
      [ -n "$ours" ] && [ -n "$theirs" ] || continue
      compared=$((compared + 1))
      if [ -n "$slack" ]; then
        ours=$((ours >> 20))
        [ $((ours > theirs ? ours - theirs : theirs - ours)) -gt "$slack" ] || continue
      elif [ "$ours" = "$theirs" ]; then
        continue
      fi
      echo "GPU $index, $field: NVML said $ours, nvidia-smi says $theirs"
      wrong=$((wrong + 1))
    done
  done
  echo "$compared fields of $count GPUs compared, $wrong differ"
  # nothing compared proves nothing
  [ "$wrong" -eq 0 ] && [ "$compared" -ge $((count * 4)) ]
}
