/**
 * Brings the events of a server to Slack and PagerDuty: verifies the signature and forwards what matters. Run it with
 * `npm install standardwebhooks`, POSTBOTE_EVENTS_SECRET, SLACK (an incoming webhook) and PAGERDUTY (an integration key of the
 * Events API v2), and give the server `--events-url http://127.0.0.1:8090/` with `--local`.
 */
import { createServer } from 'node:http'
import { Webhook } from 'standardwebhooks'

const { POSTBOTE_EVENTS_SECRET, SLACK, PAGERDUTY } = process.env
const webhook = new Webhook(POSTBOTE_EVENTS_SECRET.trim())
/** An event that ends the incident of another type. */
const ends = {
  'webhook.recovered': 'webhook.failing',
  'bot.recovered': 'bot.degraded',
  'bot.polled': 'bot.unpolled',
}
const pages = new Set(['webhook.failing', 'queue.full', 'shard.poisoned', 'shard.broken', 'shard.damaged'])

createServer(async (request, response) => {
  let body = ''
  for await (const chunk of request) body += chunk
  try {
    const { type, text, bot_id, shard } = webhook.verify(body, request.headers)
    await post(SLACK, { text })
    const about = ends[type] ?? type
    if (pages.has(about)) {
      await post('https://events.pagerduty.com/v2/enqueue', {
        routing_key: PAGERDUTY,
        event_action: type in ends ? 'resolve' : 'trigger',
        dedup_key: `${about} ${bot_id ?? shard}`,
        payload: { summary: text, source: 'postbote', severity: 'error' },
      })
    }
    response.writeHead(204).end()
  } catch (error) {
    // The server sends the event again.
    response.writeHead(500).end(String(error))
  }
}).listen(8090, '127.0.0.1')

async function post(url, body) {
  const headers = { 'content-type': 'application/json' }
  const { ok, status } = await fetch(url, { method: 'POST', headers, body: JSON.stringify(body) })
  if (!ok) throw new Error(`${new URL(url).host} responded with ${status}`)
}
