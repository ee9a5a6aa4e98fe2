/** Whether who listens at an address speaks TLS. Nothing but a handshake is sent, so it may be anybody. */
import { connect } from 'node:tls'
import { isIP } from 'node:net'
import type { Clock } from '../../kit/clock.ts'
import { answerMsMax } from '../limits.ts'

/** Returns false if there is no answer within `answerMsMax`. Never rejects. */
export function speaksTls(url: string, clock: Pick<Clock, 'after'>): Promise<boolean> {
  const { hostname, port } = new URL(url)
  const host = hostname.replace(/^\[|\]$/g, '')
  return new Promise((resolve) => {
    const socket = connect({
      host,
      port: Number(port === '' ? 80 : port),
      rejectUnauthorized: false,
      ...(isIP(host) === 0 ? { servername: host } : {}),
    })
    const end = (isTls: boolean): void => {
      timer.cancel()
      socket.destroy()
      resolve(isTls)
    }
    const timer = clock.after(answerMsMax, () => end(false))
    socket.on('secureConnect', () => end(true))
    socket.on('error', () => end(false))
    socket.on('close', () => end(false))
  })
}
