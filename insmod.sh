#!/bin/sh
# SPDX-License-Identifier: MIT
# Loads the gdrdrv.ko that was built in this tree: ./insmod.sh [PARAMETER=VALUE...]
# A second call finds it loaded; "packages/common/gdrdrv stop" unloads it.
here=$(cd "$(dirname "$0")" && pwd) || exit 1
exec "$here/packages/common/gdrdrv" start "${GDRDRV_KO:-$here/src/modules/gdrdrv/gdrdrv.ko}" "$@"
