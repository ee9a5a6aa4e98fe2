/**
 * Looks for what keeps a server from running well on this machine: the process, the data directory and its disk, the
 * clock, the ports, and the way to webhooks. It changes nothing, except that it writes and removes a small file, and sends
 * no packet beyond this machine unless a proxy or a webhook is given.
 */
import { givenTypes } from '../../kit/added-type.ts'
import { dirname, resolve } from 'node:path'
import type { Clock } from '../../kit/clock.ts'
import type { Config } from '../../config/config.ts'
import { exists } from '../../store/read-if-there.ts'
import { levelEngine } from '../../store/level/level-engine.ts'
import { examineCertificates } from './examine-certificates.ts'
import { examineClock } from '../examine-clock.ts'
import { examineDirectory } from './examine-directory.ts'
import { examineDisk, roomToStart } from './examine-disk.ts'
import { examineNetwork } from './examine-network.ts'
import { examinePorts } from './examine-ports.ts'
import { examineProcess } from './examine-process.ts'
import type { Finding } from '../../kit/finding.ts'

/** What was found out about the machine or about one database. */
export interface Examined {
  /** The lines before the findings. */
  readonly heading: readonly string[]
  readonly findings: readonly Finding[]
}

export async function examineMachine(
  config: Config,
  clock: Clock,
  webhookUrl?: string,
): Promise<readonly Examined[]> {
  const directory = resolve(config.dir)
  const existing = await nearestExisting(directory)
  const findings = [
    ...examineProcess(),
    ...(await examineDirectory({
      directory,
      existing,
      keyFile: config.adminKeyFile,
      types: givenTypes(config),
    })),
    ...(await examineDisk({
      directory: existing,
      reserveBytes: config.diskReserveBytes,
      startBytes: await roomToStart(directory, levelEngine.files),
      clock,
    })),
    ...(await examineClock({ directory, clock })),
    ...(await examinePorts(config, clock)),
    ...(await examineCertificates(config, clock)),
    ...(await examineNetwork(config, { clock, webhookUrl })),
  ]
  return [{ heading: [], findings }]
}

/** The first start creates the directory, with its parents. */
async function nearestExisting(directory: string): Promise<string> {
  for (let path = directory; ; path = dirname(path)) {
    if (path === dirname(path) || (await exists(path))) return path
  }
}
