import { type Agent, request } from 'node:http'
import type { Server } from '../server/server.ts'

/** Returns the status of getMe, called over a connection of its own or over those of an agent. */
export function getMe(
  server: Server,
  token: string,
  agent: Agent | false = false,
): Promise<number> {
  return new Promise((resolve, reject) => {
    const sent = request(`${server.botUrl}/bot${token}/getMe`, { agent }, (response) => {
      response.resume()
      response.once('end', () => resolve(response.statusCode ?? 0))
      response.once('error', reject)
    })
    sent.once('error', reject)
    sent.end()
  })
}
