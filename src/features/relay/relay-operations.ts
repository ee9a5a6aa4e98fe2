/** The calls about the relay of a bot, which takes its updates from another bot API server. */
import * as is from '../../api/words.ts'
import { botPath, declareOperations } from '../../api/operation.ts'
import { needs } from './needs.ts'

const path = `${botPath}/relay` as const

export const relayOperations = declareOperations('bots', {
  setRelay: {
    route: `PUT ${path}`,
    scope: 'manage',
    about: 'bot',
    command: 'relay set',
    more: '#relays',
    summary: 'Has a bot take its updates from another bot API server',
    description:
      'The relay goes on where the one before was, if it is of the same bot at the same server. The token is never shown.',
    checked: 'names',
    body: () =>
      is.only({
        from: is.text('A server that `--relay-from` lists.'),
        // Checked by the handler, so that no error shows a token.
        token: is.optional(
          is.text('The token at that server. Needed again whenever `from` changes.'),
        ),
      }),
    result: () => relay(),
  },
  getRelay: {
    route: `GET ${path}`,
    scope: 'read',
    about: 'bot',
    command: 'relay show',
    more: '#relays',
    summary: 'Returns what the relay of a bot does',
    result: () => relay(),
    errors: ['NO_RELAY'],
  },
  removeRelay: {
    route: `DELETE ${path}`,
    scope: 'manage',
    about: 'bot',
    command: 'relay remove',
    done: 'removed the relay of bot {bot_id}',
    more: '#relays',
    summary: 'Removes the relay of a bot',
    description: 'The other server is told what was stored. What was relayed stays.',
    result: () =>
      is.named('RemovedRelay', 'The bot whose relay was removed.', {
        bot_id: is.botId(),
        removed: is.exactly(true),
      }),
    errors: ['NO_RELAY'],
  },
})

function relay() {
  return is.named('Relay', 'The relay of a bot.', {
    bot_id: is.botId(),
    ...needs.relayFields().properties,
  })
}
