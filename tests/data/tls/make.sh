#!/bin/sh
# Makes the certificates of this folder again. Needs openssl; see README.md.
set -eu
cd "$(dirname "$0")"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
touch "$work/index.txt"
cat >"$work/ca.conf" <<CONF
[ca]
default_ca = tests
[tests]
database = $work/index.txt
new_certs_dir = $work
rand_serial = yes
default_md = sha256
policy = any
[any]
commonName = supplied
[authority]
basicConstraints = critical,CA:true
[peer]
basicConstraints = critical,CA:false
CONF
certify() { # name, signer, section
    openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj "/CN=tanist test $1" \
        -keyout "$1.key" -out "$work/$1.csr"
    signer="-keyfile $2.key -cert $2.pem"
    if [ "$1" = "$2" ]; then signer="-keyfile $1.key -selfsign"; fi
    # A start long ago: clocks of test machines are not always right.
    # shellcheck disable=SC2086
    openssl ca -batch -notext -config "$work/ca.conf" -extensions "$3" $signer \
        -startdate 20000101000000Z -enddate 21200101000000Z -in "$work/$1.csr" -out "$1.pem"
}
certify ca ca authority
certify stranger stranger authority
certify server ca peer
certify client ca peer
rm ca.key # Nothing else gets signed.
chmod 644 ./*.key
