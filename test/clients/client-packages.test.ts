/**
 * The clients for Python and Go as a stranger gets them: the archives of a release, installed where nothing else is and
 * without a network, and the programs of their pages, as they are printed but for the address.
 */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import { missing } from '../../clients/conformance/conformance-clients.ts'
import { goEnvironment } from '../../clients/conformance/go-tool.ts'
import { packOtherClients } from '../../scripts/packing/pack-other-clients.ts'
import { temporaryDirectory } from '../support/kit/temporary-directory.ts'
import { sharedServer } from '../support/server/shared-server.ts'

const root = fileURLToPath(new URL('../../../', import.meta.url))
const { version }: { version: string } = JSON.parse(readFileSync(`${root}package.json`, 'utf8'))
const shared = sharedServer()

test('the wheel of the client for Python installs without a network, and the programs of its page run', {
  skip: missing('python3', '-m', 'pip', '--version') ?? false,
}, async (t) => {
  const place = new StrangersPlace(t, await shared())
  // A pip of its own would take seconds.
  place.run('python3', '-m', 'venv', '--without-pip', 'venv')
  const python = join(place.folder, 'venv/bin/python')
  const [install = ''] = place.blocks('python', 'sh')
  const [program = '', ...args] = install.trim().split(' ')
  assert.equal(program, 'pip')
  const pip = ['-m', 'pip', '--disable-pip-version-check', '--python', python]
  place.run('python3', ...pip, ...args, '--no-index', '--quiet')
  assert.match(place.run('python3', ...pip, 'show', 'postbote-client'), /^Requires: *$/m)
  const programs = place.blocks('python', 'python')
  const outputs = programs.map((text, nth) => {
    writeFileSync(join(place.folder, `example${nth}.py`), text)
    return place.run(python, '-W', 'error', `example${nth}.py`)
  })
  assert.equal(outputs.length, 2)
  // Two ids: a single push, and that of a stream.
  for (const output of outputs) assert.match(output, /^\d+\n\d+\n$/)
})

test('the module of the client for Go builds in a module beside it, and the program of its page runs', {
  skip: missing('go', 'version') ?? missing('unzip', '-v') ?? false,
}, async (t) => {
  const place = new StrangersPlace(t, await shared())
  const [unpack = ''] = place.blocks('go', 'sh')
  const [unzip = '', ...args] = unpack.trim().split(' ')
  place.run(unzip, ...args)
  const [module = ''] = place.blocks('go', '')
  const [program = ''] = place.blocks('go', 'go')
  writeFileSync(join(place.folder, 'go.mod'), module)
  writeFileSync(join(place.folder, 'main.go'), program)
  assert.match(place.run('go', 'run', '.'), /^\d+ <nil>\n\d+ <nil>\n$/)
})

/** A directory with the archives of a release, and the address and key of a server. */
class StrangersPlace {
  readonly folder: string
  readonly #server: { readonly privateUrl: string; readonly key: string }

  constructor(t: TestContext, server: { readonly privateUrl: string; readonly key: string }) {
    this.folder = temporaryDirectory(t)
    this.#server = server
    const making = join(this.folder, 'making')
    mkdirSync(making)
    packOtherClients({ built: root, version, epochS: 0, making, target: this.folder })
  }

  /** The blocks of this kind on the page of a client. */
  blocks(client: 'python' | 'go', kind: string): string[] {
    const page = readFileSync(`${root}clients/${client}/README.md`, 'utf8')
    const found = [...page.matchAll(/^```(\w*)\n(.*?)^```$/gms)]
    return found
      .filter(([, of]) => of === kind)
      .map(([, , text = '']) => text.replaceAll('http://127.0.0.1:8082', this.#server.privateUrl))
  }

  /** Runs a program in the directory, and returns its output. */
  run(program: string, ...args: string[]): string {
    const { status, stdout, stderr } = spawnSync(program, args, {
      cwd: this.folder,
      encoding: 'utf8',
      env: { ...goEnvironment(), PYTHONPATH: '', POSTBOTE_KEY: this.#server.key },
    })
    assert.equal(status, 0, `${program} ${args.join(' ')}: ${stdout}${stderr}`)
    return stdout
  }
}
