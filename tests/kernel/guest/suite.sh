# SPDX-License-Identifier: MIT
# What runs inside the guest.  Prints harness lines; every line is judged by the host.
cd /tests || exit 1
failed=0

ok() { echo "ok $1"; }
bad() { echo "not ok $1"; failed=1; }
# check NAME COMMAND...
check() {
	name=$1
	shift
	if "$@"; then ok "$name"; else bad "$name"; fi
}

# program LABEL COMMAND...: its case names get the label in front.
program() {
	label=$1
	shift
	"$@" >/tmp/out 2>/tmp/err
	status=$?
	sed -nE "s#^(ok|not ok|skip) #\1 $label/#p" /tmp/out
	grep -v -e '^ok ' -e '^skip ' /tmp/out | sed 's/^not ok/# failed/; s/^/# /'
	sed 's/^/# /' /tmp/err
	grep -q '^not ok' /tmp/out && failed=1
	if [ $status != 0 ] && [ $status != 77 ] && ! grep -q '^not ok' /tmp/out; then
		bad "$label: status $status"
	fi
}

seconds() { cut -d . -f 1 /proc/uptime; }

for phase in $(cat /tests/phases); do
	began=$(seconds)
	. "/tests/phase-$phase.sh"
	echo "# phase $phase: $(($(seconds) - began)) s"
done
exit $failed
