# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only
# What setup, run and test share. Sourced by bash scripts that stand in the top directory.

say() { printf '%s: %s\n' "$(basename "$0")" "$*" >&2; }

fail() {
	say "$*"
	exit 1
}

# Run as root: as it is, or with sudo.
as_root() {
	if [ "$(id -u)" = 0 ]; then
		"$@"
	elif command -v sudo >/dev/null 2>&1; then
		sudo "$@"
	else
		fail "'$1' needs root and there is no sudo: run this script as root"
	fi
}

# Run as the owner of the tree: under 'sudo scripts/...' builds belong to the caller, whose Rust it is.
as_owner() {
	if [ "$(id -u)" = 0 ] && [ -n "${SUDO_USER:-}" ] && [ "$SUDO_USER" != root ]; then
		sudo -u "$SUDO_USER" -H env "PATH=$PATH" "$@"
	else
		"$@"
	fi
}

owner_home() { getent passwd "${SUDO_USER:-$(id -un)}" | cut -d: -f6; }

# Where rustup puts cargo, also when this shell has not read its profile.
add_cargo_to_path() {
	local dir
	for dir in "${CARGO_HOME:-$HOME/.cargo}/bin" "$(owner_home)/.cargo/bin"; do
		case ":$PATH:" in
		*":$dir:"*) ;;
		*) PATH="$PATH:$dir" ;;
		esac
	done
	export PATH
}
