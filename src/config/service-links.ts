/**
 * The environment variables that Kubernetes makes for each Service of a namespace, unless enableServiceLinks is false. A Service
 * whose name begins with postbote has them below POSTBOTE, and they are no options, although `postbote-http` and `postbote-admin`
 * make POSTBOTE_HTTP_PORT and POSTBOTE_ADMIN_PORT:
 *
 *     NAME_SERVICE_HOST=10.0.0.11           NAME_PORT=tcp://10.0.0.11:8081
 *     NAME_SERVICE_PORT=8081                NAME_PORT_8081_TCP=tcp://10.0.0.11:8081
 *     NAME_SERVICE_PORT_PRIVATE=8082        NAME_PORT_8081_TCP_PROTO=tcp, ..._PORT=8081, ..._ADDR=10.0.0.11
 *
 * A variable of such a name with a value of another form is no such variable. Pure.
 */
import { isIP } from 'node:net'

type Form = (value: string) => boolean

const isPort: Form = (value) => /^\d{1,5}$/.test(value)
const isAddress: Form = (value) => isIP(value) !== 0
const isProtocol: Form = (value) => /^(tcp|udp|sctp)$/.test(value)

const isPlace: Form = (value) => {
  const [, host = '', port = ''] = /^(?:tcp|udp|sctp):\/\/(.{1,100}):(\d{1,5})$/.exec(value) ?? []
  return isPort(port) && isAddress(host.replace(/^\[(.*)\]$/, '$1'))
}

/** By how the names end. */
const forms: readonly (readonly [end: RegExp, form: Form])[] = [
  [/_PORT_\d{1,5}_(TCP|UDP|SCTP)$/, isPlace],
  [/_PORT_\d{1,5}_(TCP|UDP|SCTP)_PROTO$/, isProtocol],
  [/_PORT_\d{1,5}_(TCP|UDP|SCTP)_PORT$/, isPort],
  [/_PORT_\d{1,5}_(TCP|UDP|SCTP)_ADDR$/, isAddress],
  [/_SERVICE_HOST$/, isAddress],
  [/_SERVICE_PORT(_[A-Z0-9_]{1,63})?$/, isPort],
  [/_PORT$/, isPlace],
]

/** Returns whether a variable is one that Kubernetes makes. */
export function isServiceLink(name: string, value: string): boolean {
  return forms.some(([end, form]) => end.test(name) && form(value))
}
