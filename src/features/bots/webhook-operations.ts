/** The calls about the webhook of a bot: the webhook itself, its attempts and their history, pauses, and the limit of its rate. */
import { webhookAttemptsKept } from '../../kit/limits.ts'
import { outcomes } from '../../delivery/attempts/attempt-log.ts'
import { checkStates, checkSteps } from '../../kit/states.ts'
import { deliveryHistoryMinutes, webhookUrlLengthMax } from '../../delivery/limits.ts'
import * as is from '../../api/words.ts'
import {
  allowedUpdatesMax,
  deliveriesPerSecondMax,
  deliveriesPerSecondMin,
  typeNameLengthMax,
} from '../../api/limits.ts'
import { botPath, declareOperations } from '../../api/operation.ts'

export const webhookOperations = declareOperations('webhooks', {
  setWebhook: {
    route: `PUT ${botPath}/webhook`,
    scope: 'manage',
    about: 'queue',
    command: 'webhook set',
    done: 'bot {id}: {description}',
    more: '#webhooks',
    summary: 'Sets the webhook of a bot, as its setWebhook would',
    description:
      'The endpoint is verified first, and nothing changes if that fails. It replaces the present webhook with all of its fields: what is left out gets the default of setWebhook.',
    body: () => is.only({ ...webhookFields() }),
    result: () => {
      const description = is.text('What setWebhook says.')
      return is.named('SetWebhook', 'The webhook after the call. It is on disk.', {
        ...webhookState(),
        description,
      })
    },
    errors: ['INVALID_WEBHOOK_URL', 'BAD_WEBHOOK', 'WEBHOOK_SUPERSEDED'],
  },
  changeWebhook: {
    route: `PATCH ${botPath}/webhook`,
    scope: 'manage',
    about: 'queue',
    more: '#webhooks',
    summary: 'Changes a part of the webhook of a bot, without its URL',
    description:
      'What is left out stays, and null stands for the default of setWebhook. With a `secret_token` the endpoint is verified first; the rest takes effect at once, also while it is down. Where deliveries go is changed with the whole webhook only: otherwise another endpoint would learn the path and the secret.',
    // 0, "" and false would be taken for null.
    checked: 'names',
    body: () => is.only(changedWebhookFields()),
    result: () => shownWebhook(),
    errors: ['NO_WEBHOOK', 'INVALID_WEBHOOK_URL', 'BAD_WEBHOOK', 'WEBHOOK_SUPERSEDED'],
  },
  getWebhook: {
    route: `GET ${botPath}/webhook`,
    scope: 'read',
    about: 'queue',
    portal: 'look',
    command: 'webhook show',
    more: '#webhooks',
    summary: 'Returns the webhook of a bot without its secrets',
    result: () => shownWebhook(),
  },
  deleteWebhook: {
    route: `DELETE ${botPath}/webhook`,
    scope: 'manage',
    about: 'queue',
    command: 'webhook delete',
    done: 'bot {id}: {description}',
    more: '#webhooks',
    summary: 'Removes the webhook of a bot, as its deleteWebhook would',
    query: () => ({ drop_pending_updates: dropPending() }),
    result: () => {
      const description = is.text('What deleteWebhook says.')
      return is.named('DeletedWebhook', 'The webhook is gone, on disk.', { description })
    },
  },
  listAttempts: {
    route: `GET ${botPath}/attempts`,
    scope: 'read',
    about: 'queue',
    portal: 'look',
    command: 'attempts',
    columns: [
      'time',
      'update_id',
      'status',
      'error',
      'duration_ms',
      'next_retry',
      'address',
      'traceparent',
    ],
    none: 'no attempts',
    summary: 'Returns the last attempts to deliver to the webhook',
    query: () => ({ limit: is.listLimit(webhookAttemptsKept, webhookAttemptsKept) }),
    result: () =>
      is.named('AttemptList', 'The attempts, the newest first, and what requests look like now.', {
        attempts: is.list(is.attempt()),
        request: is.orNull(shownRequest()),
      }),
  },
  checkWebhook: {
    route: `POST ${botPath}/webhook/check`,
    scope: 'manage',
    about: 'queue',
    portal: 'check',
    command: 'webhook check',
    columns: ['step', 'state', 'duration_ms', 'text'],
    more: '#check-an-endpoint',
    summary: 'Goes the way of a delivery once, step by step, and posts an empty update',
    description:
      'The check uses the webhook as it is set, with the rules and times of deliveries, so it may take a minute and a half. It is no attempt and delivers nothing. One at a time runs for each queue.',
    result: () => endpointCheck(),
    errors: ['NO_WEBHOOK'],
  },
  pauseBot: {
    route: `POST ${botPath}/pause`,
    scope: 'manage',
    about: 'queue',
    command: 'pause',
    done: 'deliveries of bot {id} are paused',
    summary: 'Pauses deliveries',
    result: () => pauseState(),
  },
  resumeBot: {
    route: `POST ${botPath}/resume`,
    scope: 'manage',
    about: 'queue',
    command: 'resume',
    done: 'deliveries of bot {id} are resumed',
    summary: 'Resumes deliveries',
    result: () => pauseState(),
  },
  retryBot: {
    route: `POST ${botPath}/retry`,
    scope: 'manage',
    about: 'queue',
    command: 'retry',
    done: '{retried_keys} chats or other keys of bot {id} are delivered now; see postbote attempts {id}',
    more: '#now',
    summary: 'Delivers now what waits for its next try',
    description:
      'All ordering keys that wait for a retry are tried as soon as the pace of the endpoint permits, also past a `Retry-After`. `ordering_key` selects one. The failures of an update stay, so the next delay is no shorter. The next deliveries go out on new connections, and the name of the endpoint is looked up before, unless that was done within the last 10 seconds.',
    query: () => ({
      ordering_key: is.optional(
        is.text('The key that is tried, as it was pushed or as it is stored.'),
      ),
    }),
    result: () =>
      is.named('RetriedKeys', 'What is delivered now.', {
        retried_keys: is.count('How many ordering keys have waited for a retry.'),
      }),
  },
  getLimits: {
    route: `GET ${botPath}/limits`,
    scope: 'read',
    about: 'queue',
    command: 'limits',
    summary: 'Returns the limit of deliveries per second',
    result: () => deliveryLimits(),
  },
  setLimits: {
    route: `PUT ${botPath}/limits`,
    scope: 'manage',
    about: 'queue',
    command: 'limits',
    summary: 'Sets or removes the limit of deliveries per second',
    // 0, "" and false would be taken for null, which removes the limit.
    checked: 'names',
    body: () => is.only(limitFields()),
    result: () => deliveryLimits(),
  },
  getHistory: {
    route: `GET ${botPath}/history`,
    scope: 'read',
    about: 'queue',
    portal: 'look',
    summary: 'Returns the deliveries and polls of the last hour, minute by minute',
    result: () =>
      is.named('DeliveryHistory', 'Lists with one value for each minute.', {
        from: is.time('When the first minute begins.'),
        outcomes: is.object(
          Object.fromEntries(
            outcomes.map((outcome) => [outcome, perMinute(is.count('How often it occurred.'))]),
          ),
        ),
        mean_ms: responseMs('mean'),
        max_ms: responseMs('longest'),
        delivery_p50_ms: deliveryMs('half'),
        delivery_p99_ms: deliveryMs('99 %'),
        fetched: perMinute(is.count('The updates that polls got.')),
        confirmed: perMinute(is.count('The updates that polls confirmed.')),
        pending: perMinute(
          is.orNull(is.count('The updates that waited; null unless the bot was in trouble.')),
        ),
      }),
  },
})

/** The fields of setWebhook. */
export function webhookFields() {
  return {
    url: is.text('The URL of the endpoint.', { minLength: 1, maxLength: webhookUrlLengthMax }),
    certificate: is.optional(is.text('Certificates as PEM, which are then the only trust root.')),
    ip_address: is.optional(
      is.text('Deliveries go to this address, whatever the name resolves to.'),
    ),
    max_connections: is.optional(
      is.integer('At most `--max-webhook-connections`, which a larger number counts as.', {
        minimum: 1,
        maximum: Number.MAX_SAFE_INTEGER,
      }),
    ),
    allowed_updates: is.optional(
      is.list(
        is.text({ maxLength: typeNameLengthMax }),
        'The types that the bot wants. Unknown ones are ignored.',
        { minItems: 0, maxItems: allowedUpdatesMax },
      ),
    ),
    drop_pending_updates: dropPending(),
    secret_token: is.optional(is.text('A secret that each delivery carries in a header.')),
  }
}

function changedWebhookFields() {
  const {
    max_connections: connections,
    allowed_updates: types,
    secret_token: secret,
  } = webhookFields()
  return {
    max_connections: is.optional(is.orNull(connections)),
    allowed_updates: is.optional(is.orNull(types)),
    secret_token: is.optional(is.orNull(secret)),
  }
}

function shownWebhook() {
  return is.named(
    'WebhookState',
    'The webhook. Neither the secret nor the path of the URL, which may be one, is shown.',
    webhookState(),
  )
}

function dropPending() {
  return is.optional(is.flag('Whether updates that wait are dropped.', { default: false }))
}

function webhookState() {
  return {
    host: is.orNull(is.text('The host of the URL; null without a webhook.')),
    ip_address: is.orNull(is.text('Where deliveries go, if that is known.')),
    max_connections: is.orNull(is.count('How many connections it may have now.')),
    allowed_updates: is.orNull(
      is.list(is.text(), 'The types that the bot wants; null for the default set.'),
      'the default set',
    ),
    has_secret_token: is.flag('Whether deliveries carry a secret.'),
    has_custom_certificate: is.flag('Whether it has a certificate of its own.'),
  }
}

function shownRequest() {
  return is.named('ShownRequest', {
    method: is.text(),
    host: is.text('The host of the URL; its path and query are secret.'),
    headers: is.list(
      is.shownHeader(),
      'Besides `Host` and `Content-Length`. Secret values are `***`.',
    ),
  })
}

function endpointCheck() {
  return is.named('EndpointCheck', 'How each step has ended.', {
    ok: is.flag('Whether no step has failed.'),
    advice: is.text('What to do, in one sentence.'),
    steps: is.list(
      is.object({
        step: is.oneOf(checkSteps),
        state: is.oneOf(checkStates),
        duration_ms: is.orNull(is.ms('How long it took, in milliseconds; null if it was skipped.')),
        text: is.reason('How it has ended, or why it was skipped.'),
      }),
      'All steps in their order, also those after one that has failed.',
      { minItems: checkSteps.length, maxItems: checkSteps.length },
    ),
    addresses: is.list(
      is.object({
        address: is.text(),
        refusal: is.orNull(is.text('Why deliveries never use it; null if they may.')),
      }),
    ),
    tls: is.orNull(
      is.described('What the endpoint has shown, also if it was refused.', {
        version: is.text(),
        subject: is.text(),
        issuer: is.text(),
        valid_until: is.orNull(is.time('When the certificate ends.')),
      }),
    ),
    status: is.orNull(is.integer({ minimum: 100, maximum: 999 })),
    response_headers: is.orNull(is.list(is.shownHeader())),
    response_body: is.orNull(is.text('As that of an attempt: null for a success.')),
  })
}

function pauseState() {
  return is.named('PauseState', 'The state after the call. It is on disk.', { paused: is.flag() })
}

function limitFields() {
  const limit = is.number(
    'The most requests that the webhook gets in a second, retries included.',
    { minimum: deliveriesPerSecondMin, maximum: deliveriesPerSecondMax },
  )
  return { deliveries_per_second: is.orNull(limit) }
}

function deliveryLimits() {
  return is.named('DeliveryLimits', 'The limit, or null for none. It is on disk.', limitFields())
}

function responseMs(which: string) {
  return perMinute(
    is.orNull(is.count(`The ${which} time of a response, in milliseconds; null without one.`)),
  )
}

function deliveryMs(share: string) {
  return perMinute(
    is.orNull(
      is.count(
        `The time within which ${share} of the delivered updates were accepted after they were stored, in milliseconds; null without one.`,
      ),
    ),
  )
}

function perMinute<Schema extends ReturnType<typeof is.count> | ReturnType<typeof is.orNull>>(
  value: Schema,
) {
  return is.list(value, { minItems: deliveryHistoryMinutes, maxItems: deliveryHistoryMinutes })
}
