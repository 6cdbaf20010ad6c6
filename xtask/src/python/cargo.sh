#!/bin/sh
# What maturin calls as cargo. It would build the package alone, which turns other features of its dependencies on, and with settings of
# its own for pyo3; both would compile hundreds of crates again. Here the whole workspace is built, with what it has already.
[ "$1" = rustc ] || exec cargo "$@"
shift
unset PYO3_CONFIG_FILE PYO3_ENVIRONMENT_SIGNATURE PYO3_PYTHON
left=$#
while [ "$left" -gt 0 ]; do
    argument=$1
    shift
    left=$((left - 1))
    case $argument in
        --) shift "$left" && break ;;
        --crate-type) shift && left=$((left - 1)) ;;
        *) set -- "$@" "$argument" ;;
    esac
done
exec cargo build --workspace "$@"
