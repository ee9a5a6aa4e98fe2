/** One server with two workers on a disk that can lose its power (test/fault/power). */
import { mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import type { DiskKind } from '../fault/power/disk-journal.ts'
import { SimulatedDisk } from '../fault/power/simulated-disk.ts'
import { temporaryRoot } from '../support/kit/temporary-root.ts'
import { until } from '../support/kit/until.ts'
import { type EndingTest, type Server, startSingleServer } from '../support/server/server.ts'
import type { Luck } from '../support/simulation/luck.ts'
import type { RelayTarget, SyncEdge } from './relay-target.ts'

const workers = 2
const readyMsMax = 60_000
const diskKinds: readonly DiskKind[] = ['ext4', 'posix']

export class ServerTarget implements RelayTarget {
  readonly victims = ['workers', 'server', 'power']
  readonly #disk: SimulatedDisk
  readonly #luck: Luck
  #server: Server
  #isDown = false

  private constructor(disk: SimulatedDisk, server: Server, luck: Luck) {
    this.#disk = disk
    this.#server = server
    this.#luck = luck
  }

  static async start(
    t: EndingTest,
    { flags, luck }: { readonly flags: readonly string[]; readonly luck: Luck },
  ): Promise<ServerTarget> {
    const place = mkdtempSync(join(temporaryRoot, 'postbote-disk-'))
    const disk = new SimulatedDisk(place)
    const server = await startSingleServer(t, { workers, dir: disk.root, env: disk.env, flags })
    // After the server has ended.
    t.after(async () => rmSync(place, { recursive: true, force: true }))
    return new ServerTarget(disk, server, luck)
  }

  server(): Server {
    return this.#server
  }

  servers(): readonly Server[] {
    return [this.#server]
  }

  async holdSync(edge: SyncEdge): Promise<void> {
    this.#disk.fail(`sync ${edge}`)
    await until(() => this.#disk.heldPid() !== 0)
  }

  letPass(): void {
    this.#disk.fail('none')
  }

  async kill(victim: string): Promise<void> {
    if (victim === 'workers') {
      // A bot's worker has no fixed place among the processes once one has been replaced.
      const pids = this.#server.workerPids()
      for (const pid of pids) process.kill(pid, 'SIGKILL')
      await until(() => !this.#server.workerPids().some((pid) => pids.includes(pid)))
      return
    }
    await this.#server.kill()
    this.#isDown = true
    if (victim !== 'power') return
    this.#disk.losePower({ kind: this.#luck.pick(diskKinds), luck: this.#luck })
  }

  async restore(): Promise<void> {
    if (this.#isDown) this.#server = await this.#server.restart()
    this.#isDown = false
    await until(async () => {
      if (this.#server.workerPids().length < workers) return false
      return (await this.#server.admin('GET', '/readyz')).status === 200
    }, readyMsMax)
  }
}
