import { resolve } from 'node:path'
import { describeAddress, type ListenAddress, type ListenerOptions } from '../../http/listener.ts'
import type { Config } from '../../config/config.ts'
import { isSocketPath } from '../../config/config-values.ts'

/** Returns the two listeners that the options name. */
export function listenersOf(config: Config): readonly ListenerOptions[] {
  return [
    {
      listener: 'bot',
      address: addressOf(config.httpIpAddress, config.httpPort),
      isTls: config.httpCert !== undefined,
    },
    {
      listener: 'private',
      address: addressOf(config.adminIpAddress, config.adminPort),
      isTls: config.adminCert !== undefined,
    },
  ]
}

function addressOf(place: string, port: number): ListenAddress {
  return isSocketPath(place) ? { path: place } : { host: place, port }
}

/** Returns the address as other processes of this machine need it, which run in other directories. */
export function addressElsewhere(address: ListenAddress): string {
  return 'path' in address ? resolve(address.path) : describeAddress(address)
}
