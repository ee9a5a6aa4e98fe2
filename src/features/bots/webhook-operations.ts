/** The calls about the webhook of a bot: the webhook itself, its attempts and their history, pauses, and the limit of its rate. */
import { Type } from 'typebox'
import { webhookAttemptsKept } from '../../kit/limits.ts'
import { outcomes } from '../../delivery/attempts/attempt-log.ts'
import { checkStates, checkSteps } from '../../kit/states.ts'
import { deliveryHistoryMinutes, webhookUrlLengthMax } from '../../delivery/limits.ts'
import { fieldSchemas } from '../../api/field-schemas.ts'
import {
  allowedUpdatesMax,
  deliveriesPerSecondMax,
  deliveriesPerSecondMin,
  typeNameLengthMax,
} from '../../api/limits.ts'
import { botPath, declareOperations } from '../../api/operation.ts'

const { count, listLimit, ms, orNull, shownHeader, time } = fieldSchemas

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
    body: () => Type.Object({ ...webhookFields() }, { additionalProperties: false }),
    result: () => {
      const description = Type.String({ description: 'What setWebhook says.' })
      return Type.Object(
        { ...webhookState(), description },
        { $id: 'SetWebhook', description: 'The webhook after the call. It is on disk.' },
      )
    },
    errors: ['INVALID_WEBHOOK_URL', 'BAD_WEBHOOK', 'WEBHOOK_SUPERSEDED'],
  },
  getWebhook: {
    route: `GET ${botPath}/webhook`,
    scope: 'read',
    about: 'queue',
    portal: 'look',
    command: 'webhook show',
    more: '#webhooks',
    summary: 'Returns the webhook of a bot without its secrets',
    result: () =>
      Type.Object(webhookState(), {
        $id: 'WebhookState',
        description:
          'The webhook. Neither the secret nor the path of the URL, which may be one, is shown.',
      }),
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
      const description = Type.String({ description: 'What deleteWebhook says.' })
      return Type.Object(
        { description },
        { $id: 'DeletedWebhook', description: 'The webhook is gone, on disk.' },
      )
    },
  },
  listAttempts: {
    route: `GET ${botPath}/attempts`,
    scope: 'read',
    about: 'queue',
    portal: 'look',
    command: 'attempts',
    summary: 'Returns the last attempts to deliver to the webhook',
    query: () => ({ limit: listLimit(webhookAttemptsKept, webhookAttemptsKept) }),
    result: () =>
      Type.Object(
        { attempts: Type.Array(fieldSchemas.attempt()), request: orNull(shownRequest()) },
        {
          $id: 'AttemptList',
          description: 'The attempts, the newest first, and what requests look like now.',
        },
      ),
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
    summary: 'Stops deliveries',
    result: () => pauseState(),
  },
  resumeBot: {
    route: `POST ${botPath}/resume`,
    scope: 'manage',
    about: 'queue',
    command: 'resume',
    done: 'deliveries of bot {id} continue',
    summary: 'Continues deliveries',
    result: () => pauseState(),
  },
  retryBot: {
    route: `POST ${botPath}/retry`,
    scope: 'manage',
    about: 'queue',
    command: 'retry',
    done: 'keys of bot {id} that are tried now: {retried_keys}',
    more: '#now',
    summary: 'Tries failed deliveries now',
    description:
      'All ordering keys that wait for a retry are tried as soon as the pace of the endpoint permits, also past a `Retry-After`. `ordering_key` selects one. The failures of an update stay, so the next delay is no shorter. The next deliveries go out on new connections, and the name of the endpoint is looked up before, unless that was done within the last 10 seconds.',
    query: () => ({
      ordering_key: Type.Optional(
        Type.String({ description: 'The key that is tried, as it was pushed or as it is stored.' }),
      ),
    }),
    result: () =>
      Type.Object(
        { retried_keys: count('How many ordering keys have waited for a retry.') },
        { $id: 'RetriedKeys', description: 'What is tried now.' },
      ),
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
    body: () => Type.Object(limitFields(), { additionalProperties: false }),
    result: () => deliveryLimits(),
  },
  getHistory: {
    route: `GET ${botPath}/history`,
    scope: 'read',
    about: 'queue',
    portal: 'look',
    summary: 'Returns the deliveries of the last hour, minute by minute',
    result: () =>
      Type.Object(
        {
          from: time('When the first minute begins.'),
          outcomes: Type.Object(
            Object.fromEntries(
              outcomes.map((outcome) => [outcome, perMinute(count('How often it occurred.'))]),
            ),
          ),
          mean_ms: responseMs('mean'),
          max_ms: responseMs('longest'),
          delivery_p50_ms: deliveryMs('half'),
          delivery_p99_ms: deliveryMs('99 %'),
          pending: perMinute(
            orNull(count('The updates that waited; null unless the bot was in trouble.')),
          ),
        },
        { $id: 'DeliveryHistory', description: 'Lists with one value for each minute.' },
      ),
  },
})

/** The fields of setWebhook. */
export function webhookFields() {
  return {
    url: Type.String({
      minLength: 1,
      maxLength: webhookUrlLengthMax,
      description: 'The URL of the endpoint.',
    }),
    certificate: Type.Optional(
      Type.String({ description: 'Certificates as PEM, which are then the only trust root.' }),
    ),
    ip_address: Type.Optional(
      Type.String({ description: 'Deliveries go to this address, whatever the name resolves to.' }),
    ),
    max_connections: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: Number.MAX_SAFE_INTEGER,
        description: 'At most `--max-webhook-connections`, which a larger number counts as.',
      }),
    ),
    allowed_updates: Type.Optional(
      Type.Array(Type.String({ maxLength: typeNameLengthMax }), {
        minItems: 0,
        maxItems: allowedUpdatesMax,
        description: 'The types that the bot wants. Unknown ones are ignored.',
      }),
    ),
    drop_pending_updates: dropPending(),
    secret_token: Type.Optional(
      Type.String({ description: 'A secret that each delivery carries in a header.' }),
    ),
  }
}

function dropPending() {
  return Type.Optional(
    Type.Boolean({ default: false, description: 'Whether updates that wait are dropped.' }),
  )
}

function webhookState() {
  return {
    host: orNull(Type.String({ description: 'The host of the URL; null without a webhook.' })),
    ip_address: orNull(Type.String({ description: 'Where deliveries go, if that is known.' })),
    max_connections: orNull(count('How many connections it may have now.')),
    allowed_updates: orNull(
      Type.Array(Type.String(), {
        description: 'The types that the bot wants; null for the default set.',
      }),
      'the default set',
    ),
    has_secret_token: Type.Boolean({ description: 'Whether deliveries carry a secret.' }),
    has_custom_certificate: Type.Boolean({
      description: 'Whether it has a certificate of its own.',
    }),
  }
}

function shownRequest() {
  return Type.Object(
    {
      method: Type.String(),
      host: Type.String({ description: 'The host of the URL; its path and query are secret.' }),
      headers: Type.Array(shownHeader(), {
        description: 'Besides `Host` and `Content-Length`. Secret values are `***`.',
      }),
    },
    { $id: 'ShownRequest' },
  )
}

function endpointCheck() {
  return Type.Object(
    {
      ok: Type.Boolean({ description: 'Whether no step has failed.' }),
      advice: Type.String({ description: 'What to do, in one sentence.' }),
      steps: Type.Array(
        Type.Object({
          step: Type.Enum([...checkSteps], { type: 'string' }),
          state: Type.Enum([...checkStates], { type: 'string' }),
          duration_ms: orNull(ms('How long it took, in milliseconds; null if it was skipped.')),
          text: Type.String({ description: 'How it has ended, or why it was skipped.' }),
        }),
        {
          minItems: checkSteps.length,
          maxItems: checkSteps.length,
          description: 'All steps in their order, also those after one that has failed.',
        },
      ),
      addresses: Type.Array(
        Type.Object({
          address: Type.String(),
          refusal: orNull(
            Type.String({ description: 'Why deliveries never use it; null if they may.' }),
          ),
        }),
      ),
      tls: orNull(
        Type.Object(
          {
            version: Type.String(),
            subject: Type.String(),
            issuer: Type.String(),
            valid_until: orNull(time('When the certificate ends.')),
          },
          { description: 'What the endpoint has shown, also if it was refused.' },
        ),
      ),
      status: orNull(Type.Integer({ minimum: 100, maximum: 999 })),
      response_headers: orNull(Type.Array(shownHeader())),
      response_body: orNull(
        Type.String({ description: 'As that of an attempt: null for a success.' }),
      ),
    },
    { $id: 'EndpointCheck', description: 'How each step has ended.' },
  )
}

function pauseState() {
  return Type.Object(
    { paused: Type.Boolean() },
    { $id: 'PauseState', description: 'The state after the call. It is on disk.' },
  )
}

function limitFields() {
  const limit = Type.Number({
    minimum: deliveriesPerSecondMin,
    maximum: deliveriesPerSecondMax,
    description: 'The most requests that the webhook gets in a second, retries included.',
  })
  return { deliveries_per_second: orNull(limit) }
}

function deliveryLimits() {
  return Type.Object(limitFields(), {
    $id: 'DeliveryLimits',
    description: 'The limit, or null for none. It is on disk.',
  })
}

function responseMs(which: string) {
  return perMinute(
    orNull(count(`The ${which} time of a response, in milliseconds; null without one.`)),
  )
}

function deliveryMs(share: string) {
  return perMinute(
    orNull(
      count(
        `The time within which ${share} of the delivered updates were accepted after they were stored, in milliseconds; null without one.`,
      ),
    ),
  )
}

function perMinute<Schema extends ReturnType<typeof count> | ReturnType<typeof orNull>>(
  value: Schema,
) {
  return Type.Array(value, { minItems: deliveryHistoryMinutes, maxItems: deliveryHistoryMinutes })
}
