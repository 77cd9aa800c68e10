# Read by run.sh: a machine as files that the tests can judge.

# What `host` found of the driver, one finding a line: what it says of engines, and of nodes in their hands, rests on
# files that stay where they are.
findings() { # REPORT
  awk '
    /^      "id":/ { id = $2 }
    /^      "severity":/ { severity = $2 }
    /^      "subject":/ { subject = $2; if (subject ~ /driver/) print severity, id }
  ' "$1" | tr -d '",' | sort
}

# Takes the files that are read of a machine, and no more of each than is read.
record() { # DIR WORK
  local dir=$1 root=$1/root file link
  mkdir -p "$root"
  cp "$2/nvml.json" "$2/profile.json" "$dir/"
  for file in /proc/devices /proc/modules /proc/version /proc/sys/kernel/osrelease /proc/sys/kernel/arch /etc/os-release \
    /proc/driver/nvidia/version /proc/driver/nvidia/params /proc/driver/nvidia/gpus/*/information \
    /proc/driver/nvidia/capabilities/mig/* /proc/driver/nvidia/capabilities/gpu*/mig/*/access \
    /proc/driver/nvidia/capabilities/gpu*/mig/*/*/access /sys/module/nvidia*/{version,initstate,taint} \
    /sys/fs/cgroup/cgroup.controllers /sys/fs/selinux/enforce; do
    keep "$root" "$file"
  done
  # loaded modules of others are nobody's business
  [ ! -e "$root/proc/modules" ] || sed -i '/^nvidia\|^nouveau/!d' "$root/proc/modules"
  # neither is who built the kernel or the module, and where
  [ ! -e "$root/proc/version" ] || sed -i 's/(.*//' "$root/proc/version"
  [ ! -e "$root/proc/driver/nvidia/version" ] || sed -i 's/([^()]*@[^()]*)/(builder)/g' "$root/proc/driver/nvidia/version"
  for file in /sys/bus/pci/devices/*; do
    if [ "$(cat "$file/vendor" 2>/dev/null)" = 0x10de ]; then
      for link in vendor device class; do keep "$root" "$file/$link"; done
      for link in driver physfn; do keep_link "$root" "$file/$link"; done
    fi
  done
  # a library is told by its name and its processor, which the first bytes have
  for file in /usr/lib/{x86_64,aarch64}-linux-gnu /usr/lib64 /usr/lib /usr/lib/*-linux-gnu/nvidia/current; do
    for link in "$file"/libcuda.so.* "$file"/libnvidia-ml.so.*; do
      if [ -L "$link" ]; then keep_link "$root" "$link"; else keep "$root" "$link" 64; fi
    done
  done
  # the driver's own lines, without the host's name before them and the process's behind them
  mkdir -p "$root/var/log"
  tail -qc 20000000 /var/log/{dmesg,messages,syslog,kern.log} 2>/dev/null | grep -ao 'NVRM: .*' |
    sed '/[Ss]erial/d; s/, pid=.*//' | tail -n 500 >"$root/var/log/dmesg" || true
  nodes >"$dir/nodes"
  pseudonyms "$dir"
  cat >"$dir/README.md" <<README
Recorded by \`integration/gpu/run.sh\`: \`root\` has the files that are read, \`nodes\` the device nodes, \`nvml.json\` what
NVML said, \`profile.json\` the host profile, \`expected\` what is found of the driver. UUIDs are replaced.
README
}

keep() { # ROOT FILE [BYTES]: a file that can be read; what is not there is not there in the record either
  [ -f "$2" ] || return 0
  mkdir -p "$1$(dirname "$2")"
  timeout 30 head -c "${3:-262144}" "$2" >"$1$2" 2>/dev/null || rm -f "$1$2"
}

keep_link() { # ROOT LINK
  [ -L "$2" ] || return 0
  mkdir -p "$1$(dirname "$2")"
  ln -sfn "$(readlink "$2")" "$1$2"
}

# The nodes again, below another root: a record cannot hold them.
make_nodes() { # LIST ROOT
  local path major minor mode uid gid
  while read -r path major minor mode uid gid; do
    mkdir -p "$2$(dirname "$path")"
    mknod -m "$mode" "$2$path" c "$major" "$minor"
    chown "$uid:$gid" "$2$path"
  done <"$1"
}

# Path, major and minor in decimal, mode, user, group.
nodes() {
  local node
  for node in /dev/nvidia* /dev/nvidia-caps/*; do
    [ -c "$node" ] || continue
    stat -c '%n %t %T %a %u %g' "$node" | while read -r path major minor mode uid gid; do
      echo "$path $((16#$major)) $((16#$minor)) $mode $uid $gid"
    done
  done
}

# The UUIDs in all files, each by another one that stays the same.
pseudonyms() { # DIR
  local uuid number=0
  grep -rhoE '(GPU|MIG)-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}' "$1" | awk '!seen[$0]++' >"$1/.uuids" || true
  while read -r uuid; do
    printf 's/%s/%s-%08x-0000-4000-8000-0000000000ff/g\n' "${uuid#*-}" "" "$number" | sed 's,/-,/,'
    number=$((number + 1))
  done <"$1/.uuids" >"$1/.script"
  rm "$1/.uuids"
  if [ -s "$1/.script" ]; then
    find "$1" -type f ! -name .script -exec sed -i -f "$1/.script" {} +
  fi
  rm "$1/.script"
}
