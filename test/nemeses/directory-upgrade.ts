/**
 * The upgrade of a single server with a data directory, and the way back, under load: the files of its program are replaced,
 * its workers are reloaded, which no client may notice, and then the server is restarted for the code of its primary.
 * Between the end and the start of the server nobody serves, so clients that repeat their pushes wait.
 */
import assert from 'node:assert/strict'
import { cpSync, existsSync, mkdirSync, renameSync, rmSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { type EndingTest, type Server, startSingleServer } from '../support/server/server.ts'
import { Luck } from '../support/simulation/luck.ts'
import { temporaryDirectory } from '../support/kit/temporary-directory.ts'
import { until } from '../support/kit/until.ts'
import { wait } from '../support/server/database.ts'
import { Balancer } from './balancer.ts'
import { checkOver } from './ordered-pushes.ts'
import { checkLists } from './upgrade-checks.ts'
import { outcomeOf, startUpgradeLoad, type UpgradeOutcome } from './upgrade-load.ts'

const workers = 2
const seat = 'server'
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
  replaceProgram(program, checkouts.old)
  let server = await startSingleServer(t, {
    workers,
    main: join(program, 'dist/src/main.js'),
    flags: ['--local', '--shards=8', checkOver],
  })
  const balancer = new Balancer(new Luck(1))
  t.after(() => balancer.close())
  balancer.add(seat, server)
  const { load, hooked } = await startUpgradeLoad(t, server, balancer)
  const stages: string[] = []
  const stage = async (name: string): Promise<void> => {
    load.event = name
    await load.recovered()
    await checkLists(server, load, { nodes: [], workers, hooked })
    await wait(stageMs)
    stages.push(name)
    console.log(`a directory: ${name}`)
  }
  const failed = (): number =>
    load.ledgers.reduce((sum, { counts }) => sum + counts.refused + counts.unknown, 0)
  await stage('the old version')
  for (const version of ['new', 'old'] as const) {
    replaceProgram(program, checkouts[version])
    const failedBefore = failed()
    load.event = `workers of the ${version} version are loaded`
    await reload(server)
    await stage(`workers of the ${version} version`)
    if (failed() > failedBefore)
      load.noteWrong(`${failed() - failedBefore} pushes failed in a reload`)
    load.event = `the server is restarted with the ${version} version`
    server = await server.restart()
    balancer.add(seat, server)
    await stage(`the ${version} version, restarted`)
  }
  await load.end()
  return outcomeOf('one server with a directory', stages, load)
}

/** Puts the program of a checkout into its place, where another one may be, as an installation of a package does. */
function replaceProgram(program: string, checkout: string): void {
  const fresh = `${program}.new`
  mkdirSync(fresh, { recursive: true })
  for (const part of programFolders)
    cpSync(join(checkout, part), join(fresh, part), { recursive: true })
  cpSync(join(checkout, 'package.json'), join(fresh, 'package.json'))
  symlinkSync(join(checkout, 'node_modules'), join(fresh, 'node_modules'))
  const gone = `${program}.old`
  rmSync(gone, { recursive: true, force: true })
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
