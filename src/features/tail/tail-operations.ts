/** The call that shows live what is pushed. */
import * as is from '../../api/words.ts'
import { botPath, content, declareOperations } from '../../api/operation.ts'

export const tailOperations = declareOperations('updates', {
  tailQueue: {
    route: `GET ${botPath}/tail`,
    scope: 'read',
    about: 'queue',
    portal: 'look',
    lasts: true,
    command: 'tail',
    summary: 'Shows live what is pushed to a queue and confirmed',
    description: 'The response goes on until one side ends it.',
    query: () => ({
      payload: is.flag('Whether the events have the updates themselves.', { default: false }),
      excerpt: is.flag('Whether they have who and what it is about, in a few words.', {
        default: false,
      }),
    }),
    results: () => ({
      200: content(
        'text/event-stream',
        'Server-sent events: `update`, `confirmed`, `dropped` and `missed`, each with JSON as its data.',
      ),
    }),
  },
})
