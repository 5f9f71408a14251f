#!/usr/bin/env bash
# Runs the tests of loxia-nn as real AVX-512 and VNNI instructions on an emulated processor, for machines that have none.
# Fails if a test fails, or if the emulated machine offered one of the two kernels not.
#
#     tools/check/avx512.sh [TEST_FILTER...]          # all tests unless given
#
# A tiny Linux with the test programs in it boots in Bochs; what they print comes over its serial line. For Debian and
# Ubuntu: as root it installs what is missing, else it says what is.
#
# EMULATION_MINUTES=60     how long the machine may run
set -euo pipefail
cd "$(dirname "$0")/../.."

parts=$PWD/tools/check/avx512
work=${CARGO_TARGET_DIR:-$PWD/target}/avx512
mkdir -p "$work"

packages="bochs bochs-term bochsbios vgabios busybox-static cpio isolinux syslinux-common xorriso"
missing=$(for package in $packages; do
    dpkg-query -W -f '${Status}' "$package" 2> /dev/null | grep -q '^install ok installed' || echo "$package"
done)
if [ -n "$missing" ]; then
    if [ "$(id -u)" != 0 ]; then
        echo "missing; install with: apt-get install --no-install-recommends" $missing >&2
        exit 2
    fi
    apt-get install -y --no-install-recommends $missing
fi

# A kernel is unpacked and not installed: this machine goes on booting its own.
if [ ! -e "$work/vmlinuz" ]; then
    image=$(apt-cache depends linux-image-cloud-amd64 | sed -n 's/^ *Depends: \(linux-image-[^ ]*\)$/\1/p' | head -n 1)
    (cd "$work" && rm -rf kernel linux-image-*.deb && apt-get download "$image" && dpkg -x linux-image-*.deb kernel)
    cp "$work"/kernel/boot/vmlinuz-* "$work/vmlinuz"
fi

build() { cargo test --release -p loxia-nn --lib --test main --no-run "$@"; }
build
programs=$(build --message-format=json 2> /dev/null | sed -n 's/.*"executable":"\([^"]*\)".*/\1/p')

# The root of the emulated machine's files: the programs, the libraries they link, and a shell.
root=$work/root
rm -rf "$root" "$work/iso"
mkdir -p "$root/bin" "$root/tests" "$work/iso"
cp /bin/busybox "$root/bin/"
install -m 755 "$parts/init" "$root/init"
printf '%s\n' "$@" > "$root/filters"
for program in $programs; do
    strip -o "$root/tests/$(basename "$program" | sed 's/-[0-9a-f]*$//')" "$program"
    ldd "$program" | grep -o '/[^ ]*' | while read -r library; do
        install -D -m 755 "$library" "$root$library"
    done
done
(cd "$root" && find . | cpio -o -H newc --quiet) > "$work/iso/initrd"
cp "$work/vmlinuz" "$parts/isolinux.cfg" /usr/lib/ISOLINUX/isolinux.bin \
    /usr/lib/syslinux/modules/bios/ldlinux.c32 "$work/iso/"
xorriso -as mkisofs -quiet -o "$work/image.iso" -b isolinux.bin -c boot.cat -no-emul-boot -boot-load-size 4 \
    -boot-info-table "$work/iso" 2> /dev/null

serial=$work/serial.txt
: > "$serial"
sed -e "s|@IMAGE@|$work/image.iso|" -e "s|@SERIAL@|$serial|" -e "s|@LOG@|$work/bochs.log|" \
    "$parts/bochsrc" > "$work/bochsrc"
# Debian's Bochs is built with its debugger, which waits to be told to go on.
echo continue > "$work/commands"
echo "emulating; see also $work/bochs.log"
TERM=vt100 timeout -s KILL "${EMULATION_MINUTES:-60}m" nice -n 10 \
    bochs-bin -q -f "$work/bochsrc" -rc "$work/commands" < /dev/null > "$work/bochs.out" 2>&1 &
emulator=$!
trap 'kill "$emulator" 2> /dev/null || true' EXIT
tail -f --pid="$emulator" "$serial" | tr -d '\r'
# It ends with an error when the machine switches itself off; the serial line says how the tests ended.
wait "$emulator" || true

printed() { grep -q "$1" <(tr -d '\r' < "$serial"); }
verdict() { echo "$1" >&2 && exit 1; }
printed '^ended: all$' || verdict "the emulated machine stopped before the tests ended"
for program in "$root"/tests/*; do
    printed "^ended: $(basename "$program") 0\$" || verdict "tests of $(basename "$program") failed"
done
printed 'kernels: .*\bavx512 avx512vnni$' || verdict "the kernels avx512 and avx512vnni were not both there, or kernels_agree not run"
echo "passed, with avx512 and avx512vnni"
