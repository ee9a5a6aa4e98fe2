/** Whether the addresses of the listeners can be used: each is bound for a moment, unless the server of the directory has it. */
import { access, constants } from 'node:fs/promises'
import { createServer } from 'node:net'
import { availableParallelism } from 'node:os'
import { dirname } from 'node:path'
import type { Clock } from '../../kit/clock.ts'
import { describeAddress, type ListenAddress } from '../../http/listener.ts'
import type { Config } from '../../config/config.ts'
import { bad, type Finding, good } from '../../kit/finding.ts'
import { statusOf } from '../serve/command-socket.ts'
import { addressElsewhere, listenersOf } from '../serve/listeners-of.ts'

export async function examinePorts(config: Config, clock: Clock): Promise<readonly Finding[]> {
  const status = await statusOf(config.dir, clock)
  const findings: Finding[] = []
  for (const { listener, address } of listenersOf(config)) {
    const option = listener === 'bot' ? '--http' : '--admin'
    findings.push(
      status?.[listener] === addressElsewhere(address)
        ? good(`the server that runs on ${config.dir} has ${describeAddress(address)}`)
        : await addressFinding(address, option),
    )
  }
  // With a server, its workers have these ports.
  if (config.clusterListen === undefined || status !== undefined) return findings
  const { host, port } = config.clusterListen
  for (let worker = 0; worker < (config.workers ?? availableParallelism()); worker++) {
    findings.push(await addressFinding({ host, port: port + worker }, '--cluster-listen'))
  }
  return findings
}

/**
 * Says whether a server could listen here.
 *
 * @param option - the option that names the address, or what the names of its options begin with
 */
export async function addressFinding(address: ListenAddress, option: string): Promise<Finding> {
  const shown = describeAddress(address)
  if ('path' in address) return socketFinding(address.path, option)
  const code = await bindingError(address)
  if (code === undefined) return good(`${shown} is free`)
  const port = option === '--cluster-listen' ? option : `${option}-port`
  const place = option === '--cluster-listen' ? option : `${option}-ip-address`
  if (code === 'EADDRINUSE') {
    return bad(`another program has ${shown}: end it, or choose another ${port}`)
  }
  if (code === 'EACCES') {
    return bad(`this user may not listen at ${shown}: choose a ${port} from 1024 on`)
  }
  return bad(`a server cannot listen at ${shown} (${code}): choose another ${place}`)
}

/** A server replaces a socket that an earlier one has left. */
async function socketFinding(path: string, option: string): Promise<Finding> {
  try {
    await access(dirname(path), constants.W_OK | constants.X_OK)
    return good(`${path} can be made`)
  } catch {
    return bad(
      `this user may not make ${path}: create its directory, or choose another ${option}-ip-address`,
    )
  }
}

/** Resolves with the code of the error, or with undefined if the address could be bound. */
function bindingError(address: ListenAddress): Promise<string | undefined> {
  return new Promise((resolve) => {
    const server = createServer()
    server.once('error', (error) =>
      resolve('code' in error && typeof error.code === 'string' ? error.code : error.message),
    )
    server.listen(address, () => server.close(() => resolve(undefined)))
  })
}
