/**
 * A Debian package of the server with a Node.js of its own, because the one of Debian 12 is too old:
 *
 *     /usr/bin/postbote                 runs /usr/lib/postbote/bin/node with the program beside it
 *     /etc/postbote/environment         options and secrets, which only root reads; an upgrade leaves it as it is
 *     /usr/lib/systemd/system/...       the unit of examples/systemd with these paths
 *     /usr/share/doc/postbote           pages for operators
 *
 * The data directory /var/lib/postbote is systemd's (`StateDirectory`), so no step of the package touches it, not even a purge.
 * Removing it is a decision of its own (docs/run/install.md). The scripts do what those of debhelper do for a unit.
 */
import { chmodSync, cpSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { gzipSync } from 'node:zlib'
import type { Architecture } from './architecture.ts'
import { filesBelow } from './files-below.ts'
import { run } from './run.ts'

export interface DebianPackageOptions {
  /** A folder with the program for the processor, as `copyProgram` lays it out. */
  readonly program: string
  /** The program of Node.js, and its license. */
  readonly node: { readonly program: string; readonly license: string }
  /** The built checkout. */
  readonly built: string
  readonly architecture: Architecture
  readonly version: string
  readonly description: string
  readonly epochS: number
  /** A folder that does not exist yet. */
  readonly making: string
  readonly to: string
}

const home = '/usr/lib/postbote'
const unitFile = 'usr/lib/systemd/system/postbote.service'
const documentation = '/usr/share/doc/postbote'
export const conffile = '/etc/postbote/environment'

/** Writes the package. */
export function writeDebianPackage(options: DebianPackageOptions): void {
  const { making, built, node } = options
  const place = (path: string): string => {
    mkdirSync(dirname(join(making, path)), { recursive: true })
    return join(making, path)
  }
  cpSync(options.program, place(home), { recursive: true, verbatimSymlinks: true })
  cpSync(node.program, place(`${home}/bin/node`))
  writeFileSync(place('usr/bin/postbote'), commandScript, { mode: 0o755 })
  const unit = readFileSync(join(built, 'examples/systemd/postbote.service'), 'utf8')
  writeFileSync(place(unitFile), unitOfPackage(unit))
  writeFileSync(place(conffile), emptyEnvironment)
  cpSync(join(built, 'LICENSE'), place(`${documentation}/copyright`))
  cpSync(node.license, place(`${documentation}/LICENSE.node`))
  const changelog = readFileSync(join(built, 'CHANGELOG.md'))
  writeFileSync(place(`${documentation}/changelog.gz`), gzipSync(changelog, { level: 9 }))
  for (const folder of ['know', 'reference', 'run', 'start', 'use']) {
    cpSync(join(built, 'docs', folder), place(`${documentation}/docs/${folder}`), {
      recursive: true,
    })
  }

  const bytes = sizeOf(making)
  writeFileSync(place('DEBIAN/control'), controlFile(options, bytes, libraryVersion(making)))
  writeFileSync(place('DEBIAN/conffiles'), `${conffile}\n`)
  run('chmod', ['-R', 'u=rwX,go=rX', making])
  chmodSync(join(making, conffile), 0o600)
  for (const [name, text] of Object.entries(maintainerScripts)) {
    writeFileSync(join(making, 'DEBIAN', name), text)
    chmodSync(join(making, 'DEBIAN', name), 0o755)
  }
  run('find', [
    making,
    '-exec',
    'touch',
    '--no-dereference',
    `--date=@${options.epochS}`,
    '{}',
    '+',
  ])
  // One thread, because the bytes of xz depend on their number.
  const same = [
    '--root-owner-group',
    '-Zxz',
    '-z2',
    '--threads-max=1',
    '--build',
    making,
    options.to,
  ]
  run('dpkg-deb', same, { env: { SOURCE_DATE_EPOCH: `${options.epochS}` } })
}

/** The control file. `bytes` is what the package takes when it is installed. */
export function controlFile(
  {
    version,
    architecture,
    description,
  }: Pick<DebianPackageOptions, 'version' | 'architecture' | 'description'>,
  bytes: number,
  libc: string,
): string {
  return `Package: postbote
Version: ${version}
Architecture: ${architecture.debian}
Maintainer: The Postbote authors <postbote@localhost>
Installed-Size: ${Math.ceil(bytes / 1_024)}
Depends: libc6 (>= ${libc}), libgcc-s1, libstdc++6 (>= 8)
Section: net
Priority: optional
Description: server that delivers updates to bots
 ${description}
`
}

/** The unit of examples/systemd, with the paths of the package. */
export function unitOfPackage(unit: string): string {
  return unit
    .replace(
      /^(?:#.*\n)+/,
      `# The unit of the package postbote: ${documentation}/docs/run/install.md explains it.\n`,
    )
    .replaceAll('/usr/bin/node /opt/postbote/dist/src/main.js', '/usr/bin/postbote')
    .replaceAll('/opt/postbote/docs', `${documentation}/docs`)
}

const commandScript = `#!/bin/sh
exec ${home}/bin/node ${home}/dist/src/main.js "$@"
`

/** Later versions keep this text: dpkg would ask everyone who has changed the file what to do with another one. */
export const emptyEnvironment = `# Options of the server as POSTBOTE_... variables, one in a line, and secrets: only root reads this file.
# ${documentation}/docs/reference/options.md lists them. Then: systemctl restart postbote
`

const ifSystemd = 'if [ -d /run/systemd/system ]; then'

export const maintainerScripts: Readonly<Record<'postinst' | 'prerm' | 'postrm', string>> = {
  // Enabled and started like every service of Debian. An administrator who disabled the unit finds it disabled afterwards.
  postinst: `#!/bin/sh
set -e
case "$1" in configure | abort-upgrade | abort-deconfigure | abort-remove)
  deb-systemd-helper unmask postbote.service >/dev/null || true
  if deb-systemd-helper --quiet was-enabled postbote.service; then
    deb-systemd-helper enable postbote.service >/dev/null || true
  else
    deb-systemd-helper update-state postbote.service >/dev/null || true
  fi
  ${ifSystemd}
    systemctl --system daemon-reload >/dev/null || true
    if [ -n "$2" ]; then action=restart; else action=start; fi
    if ! deb-systemd-invoke $action postbote.service >/dev/null 2>&1; then
      echo 'postbote: the server did not start. This is what systemctl status postbote says:' >&2
      systemctl status --no-pager --full --lines=5 postbote.service >&2 || true
    fi
  fi
  ;;
esac
`,
  prerm: `#!/bin/sh
set -e
if [ "$1" = remove ] && [ -d /run/systemd/system ]; then
  deb-systemd-invoke stop postbote.service >/dev/null || true
fi
`,
  postrm: `#!/bin/sh
set -e
${ifSystemd}
  systemctl --system daemon-reload >/dev/null || true
fi
if [ "$1" = remove ] && [ -x /usr/bin/deb-systemd-helper ]; then
  deb-systemd-helper mask postbote.service >/dev/null || true
fi
if [ "$1" = purge ]; then
  if [ -x /usr/bin/deb-systemd-helper ]; then
    deb-systemd-helper purge postbote.service >/dev/null || true
    deb-systemd-helper unmask postbote.service >/dev/null || true
  fi
  if [ -e /var/lib/postbote ] || [ -e /var/lib/private/postbote ]; then
    echo 'postbote: the data stays in /var/lib/postbote; remove it with: rm -rf /var/lib/private/postbote /var/lib/postbote' >&2
  fi
fi
`,
}

/** The newest version of the C library that a program or an addon below a folder asks for. */
function libraryVersion(folder: string): string {
  const wanted = filesBelow(folder)
    .filter((file) => /\.node$|\/bin\/node$/.test(file))
    .flatMap((file) => [...readFileSync(file, 'latin1').matchAll(/\0GLIBC_2\.(\d+)/g)])
    .map(([, minor]) => Number(minor))
  return `2.${Math.max(...wanted)}`
}

function sizeOf(folder: string): number {
  return filesBelow(folder).reduce((sum, file) => sum + statSync(file).size, 0)
}
