# What a container runtime does before the command of a container, as far as MPI needs it. It runs in namespaces of
# the container's own.
#   container.sh FOLDER HOSTNAME NODE DIRECTORY LAYER HIDDEN GPUS USER GROUP command...
# FOLDER has: rw, root (both empty), mounts (lines of shell), started (a pipe that is written at the end). LAYER: the files
# of the image; HIDDEN: files of this machine that the image lacks; GPUS: indices, which become device files; USER, GROUP:
# whose processes they are, by number. PREFIX in the environment is the folder of this machine's Python environment.
set -eu
P=$1 NAME=$2 NODE=$3 DIRECTORY=$4 LAYER=$5 HIDDEN=$6 GPUS=$7 USER=$8 GROUP=$9
shift 9
mount --make-rprivate /
hostname "$NAME"

# The image: this machine's own file system, under what is written here. An upper layer takes a tmpfs.
mount -t tmpfs tmpfs "$P/rw"
mkdir "$P/rw/upper" "$P/rw/work"
cp -a "$LAYER/." "$P/rw/upper/"
R=$P/root
mount -t overlay overlay -o "lowerdir=/,upperdir=$P/rw/upper,workdir=$P/rw/work" "$R"
for file in $HIDDEN; do rm -rf "$R$file"; done

mount -t proc proc "$R/proc"
mount --rbind /sys "$R/sys"
mount -t tmpfs -o mode=755 tmpfs "$R/dev"
mkdir "$R/dev/pts" "$R/dev/shm"
for device in null zero full random urandom tty; do
  touch "$R/dev/$device"
  mount --bind "/dev/$device" "$R/dev/$device"
done
mount -t devpts -o newinstance,ptmxmode=0666 devpts "$R/dev/pts"
ln -s pts/ptmx "$R/dev/ptmx"
ln -s /proc/self/fd "$R/dev/fd"
for number in 0:stdin 1:stdout 2:stderr; do ln -s "fd/${number%:*}" "$R/dev/${number#*:}"; done
mount -t tmpfs -o size=64m,mode=1777 tmpfs "$R/dev/shm"
for gpu in $GPUS; do touch "$R/dev/nvidia$gpu"; done
mount -t tmpfs tmpfs "$R/run"
# What this machine has there is its own; what the image has there is its layer's.
[ ! -d "$LAYER/run" ] || cp -a "$LAYER/run/." "$R/run/"
echo "$NODE" > "$R/run/machine"
mount -t tmpfs -o mode=1777 tmpfs "$R/tmp"
mount -t tmpfs -o mode=1777 tmpfs "$R/var/tmp"
# Programs of an image may run with the environment of this one, wherever that is.
case $PREFIX in /tmp/* | /var/tmp/*) mkdir -p "$R$PREFIX" && mount --bind "$PREFIX" "$R$PREFIX" ;; esac
touch "$R/etc/hosts"
mount --bind "$P/../hosts" "$R/etc/hosts"
echo "$NAME" > "$R/etc/hostname"
. "$P/mounts"
mkdir -p "$R$DIRECTORY"
echo > "$P/started"
exec unshare --root="$R" --wd="$DIRECTORY" --setgid="$GROUP" --setuid="$USER" "$@"
