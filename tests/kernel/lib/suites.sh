# SPDX-License-Identifier: MIT
# Packages of other Debian suites, without touching the system's own apt; sourced by builds.sh.

# The mirror that the system uses, and its twin for security updates.
mirror_of() {
	local sites
	sites=$(apt-get indextargets --format '$(SITE)' 2>/dev/null | grep -E '/debian(-security)?/?$' | sort -u)
	case $1 in
	*-security) grep -m 1 security <<<"$sites" || echo http://deb.debian.org/debian-security ;;
	*) grep -m 1 -v security <<<"$sites" || echo http://deb.debian.org/debian ;;
	esac
}

# use_suite NAME ARCH SUITE...: apt works on these suites from here on; fails without an index.
use_suite() {
	local name=$1 arch=$2 dir=$CACHE/apt/$1 suite
	shift 2
	mkdir -p "$dir"/{lists,cache/archives}/partial "$dir/empty"
	: >"$dir/status"
	unset APT_CONFIG
	for suite; do
		echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg]" \
			"$(mirror_of "$suite") $suite main contrib non-free"
	done >"$dir/sources.list"
	cat >"$dir/apt.conf" <<-END
		Dir::Etc::sourcelist "$dir/sources.list";
		Dir::Etc::sourceparts "$dir/empty";
		Dir::Etc::preferencesparts "$dir/empty";
		Dir::State::Lists "$dir/lists";
		Dir::State::status "$dir/status";
		Dir::Cache "$dir/cache";
		APT::Architecture "$arch";
		APT::Architectures { "$arch"; };
		APT::Sandbox::User "root";
		Acquire::Languages "none";
	END
	export APT_CONFIG=$dir/apt.conf
	[ -e "$dir/updated" ] && return 0
	# Frozen suites are past their date; signatures are checked all the same.
	apt-get update -q -o Acquire::Check-Valid-Until=false -o APT::Update::Error-Mode=any \
		>"$dir/update.log" 2>&1 && touch "$dir/updated"
}

# newest EXPRESSION: the last version of the packages that match.
newest() {
	apt-cache pkgnames | grep -Ex "$1" | sort -V | tail -n 1
}

# Leaves PACKAGE's file in the store and prints its name.
fetch_package() {
	local package=$1 store=$CACHE/debs
	mkdir -p "$store"
	compgen -G "$store/${package%%=*}_${2:-*}.deb" >/dev/null ||
		(cd "$store" && apt-get download -q "$package") >&2 || return 1
	compgen -G "$store/${package%%=*}_${2:-*}.deb" | sort -V | tail -n 1
}

# headers_into PLACE PACKAGE: unpacks the headers and what they point at by absolute names.
headers_into() {
	local place=$1 package=$2 part file
	[ -e "$place/usr/src/$package/Makefile" ] && return 0
	[ "$(id -u)" = 0 ] || { echo "unpacking kernel headers takes root"; return 1; }
	for part in $(apt-cache depends --no-recommends --no-suggests "$package" |
		sed -n 's/.*Depends: \(linux-\(headers\|kbuild\|base\)-[0-9].*\)/\1/p') "$package"; do
		# The tools that run here come with the host's headers.
		[[ $package = *-arm64 && $part = linux-kbuild-* ]] && continue
		file=$(fetch_package "$part") || { echo "no package $part"; return 1; }
		dpkg-deb --fsys-tarfile "$file" | tar -C "$place" -x --keep-directory-symlink || return 1
	done
}

# folder_of SUITE COMPILER: a small system with that suite's compiler, kept.
folder_of() {
	local place=$CACHE/$1
	[ -e "$place/ready" ] && return 0
	command -v mmdebstrap >/dev/null || { echo "mmdebstrap is not installed"; return 1; }
	rm -rf "$place"
	(
		unset APT_CONFIG
		mmdebstrap -q --variant=apt --include="$2,make,libelf1t64" \
			--aptopt='Acquire::Check-Valid-Until "false"' "$1" "$place" "$(mirror_of "$1")"
	) || return 1
	touch "$place/ready"
}

# inside PLACE COMMAND...: 7.x's tools read /proc, which is gone again when the command ends.
inside() {
	local place=$1
	shift
	if [ "$place" = / ]; then
		"$@"
	else
		unshare -m sh -c 'mount -t proc proc "$0/proc" && exec chroot "$0" "$@"' "$place" "$@"
	fi
}
