import type { ListenAddress, ListenerOptions } from '../../cluster/listener.ts'
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
