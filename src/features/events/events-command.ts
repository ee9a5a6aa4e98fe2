/** `postbote events`: shows what the operator of a server should know, and follows it. */
import { eventOperations } from './event-operations.ts'
import { eventDataOf, eventJson, eventLine } from './event-line.ts'
import { followCall } from '../../cli/follow-call.ts'
import { remoteCommand } from '../../cli/remote/remote-command.ts'

export const eventsCommand = remoteCommand(eventOperations.followEvents, {
  sentence:
    'shows events for the operator, such as failing webhooks, full queues and lost workers, until SIGINT (Ctrl+C)',
  fields: {
    last: { default: '10', sentence: 'Begins with so many events of the past.' },
    type: { defaultShown: 'all types' },
  },
  run: (call, { query: { last, type } = {} }) =>
    followCall(call, {
      operation: eventOperations.followEvents,
      name: 'the stream of events',
      afterGap: 'it has all events since',
      inputAfter: (after) => ({ query: { ...(after === undefined ? { last } : { after }), type } }),
      dataOf: eventDataOf,
      json: eventJson,
      line: eventLine,
    }),
})
