# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only
# Sourced by the bash scripts, which run in the top directory.

say() { printf '%s: %s\n' "$(basename "$0")" "$*" >&2; }

fail() {
	say "$*"
	exit 1
}

# Prints the script's head.
show_help() {
	sed -n '3,/^[^#]/s/^# \{0,1\}//p' "$0"
	exit 0
}

# Runs a command as root, with sudo if needed.
as_root() {
	if [ "$(id -u)" = 0 ]; then
		"$@"
	elif command -v sudo >/dev/null 2>&1; then
		sudo "$@"
	else
		fail "'$1' needs root and there is no sudo: run this script as root"
	fi
}

# Runs a command as the owner of the tree. Under 'sudo scripts/...' that is the invoking user, who
# owns the build and has Rust.
as_owner() {
	if [ "$(id -u)" = 0 ] && [ -n "${SUDO_USER:-}" ] && [ "$SUDO_USER" != root ]; then
		sudo -u "$SUDO_USER" -H env "PATH=$PATH" ${ROOST_COMMIT+"ROOST_COMMIT=$ROOST_COMMIT"} "$@"
	else
		"$@"
	fi
}

owner_home() { getent passwd "${SUDO_USER:-$(id -un)}" | cut -d: -f6; }

# Adds rustup's folder of cargo, in case this shell has not read its profile.
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
