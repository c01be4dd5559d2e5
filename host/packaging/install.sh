#!/bin/sh
# Installs Svc for the current user, or brings an installation up to date:
#
#     sh install.sh [--prefix DIR] [--version VERSION] [--from URL] [--allow-older] [--remove]
#
# Every archive is verified with the key below before anything of it is used; an older version than the installed one is
# refused. Root is not needed: the default prefix is ~/.local. host/packaging/release fills in the key and the address.
set -eu

public_key='@PUBLIC_KEY@'
from='@BASE_URL@'
prefix=${HOME:?there is no home directory}/.local
version=latest
allow_older=no
remove=no

fail() { echo "install.sh: $*" >&2; exit 1; }

while [ $# -gt 0 ]; do
    case $1 in
        --prefix) prefix=${2:?--prefix wants a directory}; shift ;;
        --version) version=${2:?--version wants a version}; shift ;;
        --from) from=${2:?--from wants a URL}; shift ;;
        --allow-older) allow_older=yes ;;
        --remove) remove=yes ;;
        *) fail "unknown option $1; known are --prefix, --version, --from, --allow-older, --remove" ;;
    esac
    shift
done
own=$prefix/share/svc
receipt=$own/receipt

if [ "$remove" = yes ]; then
    [ -f "$receipt" ] || fail "$receipt is not there: this prefix was not installed by install.sh"
    "$prefix/bin/svc" integrate --remove || true
    sed -n 's/^file //p' "$receipt" | while read -r file; do rm -f "$prefix/$file"; done
    rm -rf "$own"
    echo "Removed. Downloads and settings stay where they are."
    exit 0
fi

case $(uname -s)-$(uname -m) in
    Linux-x86_64) target=x86_64-unknown-linux-gnu ;;
    Linux-aarch64) target=aarch64-unknown-linux-gnu ;;
    *) fail "there is no archive for $(uname -s) on $(uname -m); build from source" ;;
esac

fetch() { # URL FILE
    if command -v curl >/dev/null; then
        curl --fail --silent --show-error --location --proto '=https,http' --output "$2" "$1"
    elif command -v wget >/dev/null; then
        wget --quiet --output-document "$2" "$1"
    else
        fail "neither curl nor wget is there"
    fi || fail "cannot fetch $1"
}

# Verifies FILE with FILE.minisig (prehashed signatures, as minisign makes them), and prints the trusted comment.
verify() {
    if command -v minisign >/dev/null; then
        minisign -V -q -P "$public_key" -m "$1" >/dev/null 2>&1 || fail "the signature of $(basename "$1") is not valid; nothing was installed"
    elif command -v openssl >/dev/null; then
        verify_with_openssl "$1" || fail "the signature of $(basename "$1") is not valid; nothing was installed"
    else
        fail "neither minisign nor openssl is there to verify the signature with"
    fi
    sed -n 's/^trusted comment: //p' "$1.minisig"
}

verify_with_openssl() {
    printf '%s' "$public_key" | base64 -d > "$work/key" || return 1
    sed -n 2p "$1.minisig" | base64 -d > "$work/signature" || return 1
    sed -n 4p "$1.minisig" | base64 -d > "$work/global" || return 1
    [ "$(wc -c < "$work/key")" = 42 ] && [ "$(wc -c < "$work/signature")" = 74 ] || return 1
    [ "$(head -c 2 "$work/signature")" = ED ] || return 1
    # The key's number is that of the signature.
    [ "$(tail -c +3 "$work/key" | head -c 8 | od -An -tx1)" = "$(tail -c +3 "$work/signature" | head -c 8 | od -An -tx1)" ] || return 1
    # An Ed25519 key in DER is these twelve bytes and the key.
    { printf '\060\052\060\005\006\003\053\145\160\003\041\000'; tail -c 32 "$work/key"; } > "$work/key.der"
    tail -c 64 "$work/signature" > "$work/signature.raw"
    openssl dgst -blake2b512 -binary "$1" > "$work/digest" || return 1
    openssl pkeyutl -verify -pubin -inkey "$work/key.der" -keyform DER -rawin -in "$work/digest" \
        -sigfile "$work/signature.raw" >/dev/null 2>&1 || return 1
    # The second signature is over the first one and the trusted comment.
    { cat "$work/signature.raw"; sed -n 's/^trusted comment: //p' "$1.minisig" | tr -d '\n'; } > "$work/signed"
    openssl pkeyutl -verify -pubin -inkey "$work/key.der" -keyform DER -rawin -in "$work/signed" \
        -sigfile "$work/global" >/dev/null 2>&1
}

[ -n "$from" ] && [ "$from" != '@BASE''_URL@' ] || fail "where from? give --from URL"
if [ -e "$prefix/bin/svc" ] && [ ! -f "$receipt" ]; then
    fail "$prefix/bin/svc was not installed by install.sh; update it the way it was installed, or give another --prefix"
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
if [ "$version" = latest ]; then
    fetch "$from/latest" "$work/latest"
    fetch "$from/latest.minisig" "$work/latest.minisig"
    verify "$work/latest" >/dev/null
    version=$(head -n 1 "$work/latest")
fi
case $version in *[!0-9A-Za-z.+-]* | '') fail "this is no version: $version" ;; esac
if [ -f "$receipt" ]; then
    installed=$(sed -n 's/^version //p' "$receipt")
    if [ "$installed" = "$version" ]; then
        echo "Svc $version is installed already."
        exit 0
    fi
    newest=$(printf '%s\n%s\n' "$installed" "$version" | sort -V | tail -n 1)
    [ "$newest" = "$version" ] || [ "$allow_older" = yes ] ||
        fail "$version is older than the installed $installed; --allow-older installs it all the same"
fi
archive=svc-$version-$target.tar.gz
fetch "$from/$archive" "$work/$archive"
fetch "$from/$archive.minisig" "$work/$archive.minisig"
# A valid signature of another file is not one of this file.
comment=$(verify "$work/$archive")
[ "$comment" = "svc $version $target" ] || fail "the signature is of \"$comment\", not of svc $version $target; nothing was installed"
mkdir "$work/files"
tar -xzf "$work/$archive" -C "$work/files" --strip-components=1
"$work/files/bin/svc" --version >/dev/null || fail "this executable does not start on this system; nothing was installed"

mkdir -p "$own"
{
    echo "version $version"
    echo "from $from"
    (cd "$work/files" && find . -type f | sed 's|^\./|file |' | sort)
} > "$work/receipt"
(cd "$work/files" && find . -type f) | while read -r file; do
    mkdir -p "$prefix/$(dirname "$file")"
    # Beside its place, then renamed: a running svc keeps its file, and a power cut leaves the old or the new one.
    cp "$work/files/$file" "$prefix/$file.new"
    mv "$prefix/$file.new" "$prefix/$file"
done
cp "$work/receipt" "$receipt.new" && mv "$receipt.new" "$receipt"
cp "$0" "$own/install.sh.new" && mv "$own/install.sh.new" "$own/install.sh"
echo "Svc $version is installed as $prefix/bin/svc."
case :$PATH: in *:"$prefix/bin":*) ;; *) echo "Add $prefix/bin to your PATH." ;; esac
