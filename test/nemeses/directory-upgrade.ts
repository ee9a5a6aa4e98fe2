/**
 * The upgrade of a single server with a data directory, and the way back, under load, as docs/run/operations.md describes it:
 * the files of its program are replaced, its workers are reloaded, which no client may notice, and then the server is
 * restarted for the code of its primary. Between the end and the start of the server nobody serves.
 */
import assert from 'node:assert/strict'
import { existsSync, renameSync } from 'node:fs'
import { cp, mkdir, rm, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { type EndingTest, type Server, startSingleServer } from '../support/server/server.ts'
import { temporaryDirectory } from '../support/kit/temporary-directory.ts'
import { until } from '../support/kit/until.ts'
import { wait } from '../support/server/database.ts'
import { checkOver } from './ordered-pushes.ts'
import { checkLists } from './upgrade-checks.ts'
import { UpgradeLoad, type UpgradeOutcome } from './upgrade-load.ts'

const workers = 2
/** What a package has of a checkout, as far as a server needs it. */
const programFolders = [
  'dist/src',
  'dist/dashboard',
  'dist/workers',
  'dist/native-bindings',
  'native-bindings/prebuilds',
]
/** How long the load goes on at a stage before the next one. */
const stageMs = 3_000
const reloadMsMax = 60_000

/**
 * Upgrades a server from one checkout to another and back.
 *
 * @param checkouts - the folders of the versions, both built
 */
export async function upgradeDirectory(
  t: EndingTest,
  checkouts: { readonly old: string; readonly new: string },
): Promise<UpgradeOutcome> {
  const program = join(temporaryDirectory(t), 'app')
  await replaceProgram(program, checkouts.old)
  let server = await startSingleServer(t, {
    workers,
    main: join(program, 'dist/src/main.js'),
    flags: ['--local', '--shards=8', checkOver],
  })
  const load = await UpgradeLoad.start(t, server, 2)
  const stage = async (name: string): Promise<void> => {
    load.begin(name)
    await load.clients.recovered()
    await checkLists(server, load, { nodes: [], workers })
    await wait(stageMs)
    console.log(`a directory: ${name}`)
  }
  await stage('the old version')
  for (const version of ['new', 'old'] as const) {
    await replaceProgram(program, checkouts[version])
    load.begin(`reload with the ${version} version`)
    await reload(server)
    await stage(`workers of the ${version} version`)
    load.begin(`restart with the ${version} version`, true)
    server = await server.restart()
    await stage(`the ${version} version`)
  }
  return load.end('One server with a directory')
}

/** Puts the program of a checkout into its place, where another one may be, as an installation of a package does. */
async function replaceProgram(program: string, checkout: string): Promise<void> {
  const fresh = `${program}.new`
  await mkdir(fresh, { recursive: true })
  for (const part of programFolders)
    await cp(join(checkout, part), join(fresh, part), { recursive: true })
  await cp(join(checkout, 'package.json'), join(fresh, 'package.json'))
  await symlink(join(checkout, 'node_modules'), join(fresh, 'node_modules'))
  const gone = `${program}.old`
  await rm(gone, { recursive: true, force: true })
  if (existsSync(program)) renameSync(program, gone)
  renameSync(fresh, program)
}

/** Reloads, as SIGHUP does; the old workers may serve their connections for a while. */
async function reload(server: Server): Promise<void> {
  const ends = (): number =>
    server.output().match(/"msg":"(?:reloaded|the reload failed.*?)"/g)?.length ?? 0
  const before = ends()
  process.kill(server.primaryPid, 'SIGHUP')
  await until(() => ends() > before, reloadMsMax)
  const failure = /^.*"the reload failed.*$/m.exec(server.output())
  assert.equal(failure?.[0], undefined)
}
