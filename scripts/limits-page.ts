/**
 * Generates docs/reference/limits.md: the bounds that people outside can reach, by subject. A sentence of the page is the
 * first one of the constant's comment, and the value is the constant's, so both are told once. The constants are found by
 * their names in the text of the sources, because most of them are above the code that uses them and are not exported.
 */
import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { runInNewContext } from 'node:vm'

const source = fileURLToPath(new URL('../../src/', import.meta.url))

const head = `# Limits

<!-- Generated from the constants of src by scripts/generate-docs.ts: change them there. -->

This page lists the fixed bounds that bots, producers, endpoints and strangers can reach. The sections in brackets are those
of [protocol.md](../use/protocol.md), which says what happens at a bound. Bounds that an operator may change are
[options](options.md). The other bounds are constants in \`src/\`, each above the code that uses it and with its reason.
`

const groups: ReadonlyArray<readonly [title: string, names: string]> = [
  [
    'Connections (§1)',
    `keepAliveTimeoutMs requestLineWaitMs requestLineWaitersMax headersTimeoutMs keylessMs requestTimeoutMs
    silentBotConnectionMs pipelinedPerTurnMax callsWaitingMax lingeringBytesMax refusedBodyBytesMax loopBudgetBurstMs
    loopDebtorsMax budgetWaitersMax heldBodiesSharedAddressBytesMax`,
  ],
  [
    'Tokens (§2)',
    `tokenLengthMax botIdMin botIdMax creationsPerMinuteMax creationsPerHourMax clientAddressesMax refusalDelayMs
    delayedRefusalsPerWorkerMax delayedRefusalsPerBotMax tokenOverlapSMax`,
  ],
  [
    'Requests (§3)',
    `requestLineBytesMax headerBytesMax parameterBytesMax certificateRequestBytesMax parametersMax jsonValuesMax
    jsonNestingMax bodyGrowthMax bodyGrowthFreeBytes partHeaderLinesMax partHeadBytesMax unavailableRetryAfterS
    bodyRetryAfterS brokenShardRetryAfterS handOffWaitMs`,
  ],
  [
    'Updates (§4)',
    `updateIdFirstMin updateIdFirstMax updateIdRenumber updateIdMax offsetBelowOldestMax updateNestingMax ttlSMax
    orderingKeyBytesMax expirySweepPeriodMs groupLingerMs`,
  ],
  [
    'Relays (§4.9)',
    `relayPollS relayBatchMax relayAnswerBytesMax relayConnectTimeoutMs relayAnswerSlackMs relayReadTimeoutMs relayFrameBytesMax relayBodyTimeoutMs
    relayLargeAnswersMax relaySmallAnswerBytesMax relayLastPollMsMax relayEmptyRestMs relayStoreRetryMsMax refusedFileBytesMax refusedUpdateBytesMax`,
  ],
  [
    'getUpdates (§5)',
    `pollLimitMax pollTimeoutSMax responseBytesMax updateEnvelopeBytes pollRepeatedWithinMs pollRepeatedTimeoutMs
    pollHastyWithinMs pollPauseWithinMs pollPauseAfterLastMs pollPauseAfterFirstMs allowedUpdatesLengthMax`,
  ],
  [
    'setWebhook (§6)',
    `webhookUrlLengthMax webhookSecretLengthMax certificateBytesMax certificatesMax certificateBlockBytesMax
    certificateBlocksBytesMax webhookAddressesMax setWebhookPeriodMs setWebhookRetryPeriodMs
    webhookTrustMs`,
  ],
  [
    'Deliveries (§8)',
    `webhookConnectTimeoutMs webhookResponseTimeoutMs webhookKeepAliveMs webhookResponseBytesMax
    webhookErrorLengthMax webhookRetryCapMsMin
    webhookRetryCapMsMax webhookRetryAfterSMax webhookRecentSuccessMs webhookFastOpeningsMax webhookFastOpeningsMs
    webhookSlowOpeningMs webhookSlowConnectionsMax webhookResolvedForMs webhookCertificatesMax
    webhookCertificatesBytesMax webhookCertificateRsaBitsMax webhookTlsSessionsMax webhookReplyBytesMax
    webhookRepliesPerBotMax upstreamCallsPerBotMax signingKeysMax signingKeyOverlapSMax deadLetterLifeMs
    deadLettersMax deadLetterBytesMax webhookAttemptsKept webhookHealthRecentMs shownHeadersMax
    shownHeadersBytesMax endpointChecksMax`,
  ],
  [
    'Answers of webhooks, origins and upstream servers (§4.9, §8)',
    'interimResponsesMax smallPiecesBytesMax framingBytesMax upstreamCallTimeoutMs',
  ],
  [
    'Pace of deliveries (§8.12)',
    `deliveriesPerSecondMin deliveriesPerSecondMax webhookRateBurstMs webhookPaceStepMs webhookFailingMin
    webhookCarefulPerSecond webhookPaceRejectedPerSecond webhookPaceSickPerSecond webhookPaceClimbSteps
    webhookPaceCalmMs webhookPaceMaxPerSecond`,
  ],
  [
    'The private API (§9)',
    `idempotencyKeyLengthMax idempotencyLifeMs idempotencyKeysPerDayMax updateSlackBytes pairHeaderBytesMax
    streamPairsMax streamBytesMax streamIdleMs pairWaitMs streamCarryBytesFree longLinesBytesMax privateBodyBytesMax
    listedPerPageMax tailsMax tailWaitingBytesMax eventStreamsMax eventsKeptMax keyPlacesShare accessKeysMax
    accessKeysPerFamilyMax accessKeyBotsMax endedSessionsPerKeyMax registrationBytesMax registrationLinesMax`,
  ],
  [
    "The owner's page (§9.8)",
    `portalLinksMax portalLinkTtlSMax portalCallsPerSecond portalCallsBurst portalChangesBurst portalChangeMs portalTailsMax
    portalTailsShare`,
  ],
  ['The end of the server (§10)', 'drainMs forwardedDrainMs'],
]

interface Constant {
  /** Text between the marks of its comment; undefined if it has none. */
  readonly comment: string | undefined
  readonly expression: string
}

/** @returns the complete text of docs/reference/limits.md */
export function limitsPage(): string {
  const constants = constantsOfSources()
  return `${head}${groups.map(([title, names]) => list(title, names.split(/\s+/))).join('')}`

  function list(title: string, names: readonly string[]): string {
    const rows = names.map((name) => {
      const { comment } = constantNamed(name, constants)
      assert(comment !== undefined, `${name}: expected a comment above the constant`)
      const shown = shownLimit(name, valueOf(name, constants))
      return `- \`${name}\` ${shown}: ${firstSentence(comment)}\n`
    })
    return `\n## ${title}\n\n${rows.join('')}`
  }
}

/** Returns the constants of all modules of src by name. Several files may have different ones of a name. */
export function constantsOfSources(): ReadonlyMap<string, readonly Constant[]> {
  const files = readdirSync(source, { recursive: true, encoding: 'utf8' })
  const constant =
    /(?:\/\*\*((?:(?!\*\/)[\s\S])*)\*\/\n)?^(?:export )?const (\w+)(?:: \w+)? = (.+)$/gm
  const found = new Map<string, Constant[]>()
  for (const file of files.filter((name) => name.endsWith('.ts'))) {
    const text = readFileSync(join(source, file), 'utf8')
    for (const [, comment, name = '', expression = ''] of text.matchAll(constant)) {
      found.set(name, [...(found.get(name) ?? []), { comment, expression }])
    }
  }
  return found
}

function constantNamed(name: string, constants: ReturnType<typeof constantsOfSources>): Constant {
  const [constant, another] = constants.get(name) ?? []
  assert(constant !== undefined, `${name}: expected a constant of this name in src`)
  assert(another === undefined, `${name}: expected one constant of this name in src, got several`)
  return constant
}

/** A bound is written as a calculation with numbers and other constants. */
function valueOf(name: string, constants: ReturnType<typeof constantsOfSources>): unknown {
  const { expression } = constantNamed(name, constants)
  const others = new Set(expression.match(/\b[a-z]\w*/gi))
  return runInNewContext(
    expression,
    Object.fromEntries([...others].map((other) => [other, valueOf(other, constants)])),
  )
}

/** What follows a colon is the reason, which stays with the constant. */
function firstSentence(comment: string): string {
  const text = comment.replaceAll(/\s*\n \*\s*/g, ' ').trim()
  const [sentence] = text.split(/[.:](?:\s|$)/)
  return `${sentence}.`
}

/** A limit with its unit, which its name contains. */
function shownLimit(name: string, value: unknown): string {
  assert(typeof value === 'number', `${name} is no limit`)
  if (/Ms(?:Max|Min)?$/.test(name)) return `${withCommas(value / 1_000)} s`
  if (/S(?:Max)?$/.test(name)) return `${withCommas(value)} s`
  if (name.endsWith('Share')) return `1/${withCommas(1 / value)}`
  if (!/Bytes(?:Max|Free)?$/.test(name) || value < 1_024) return withCommas(value)
  const isSmall = value < 2 ** 20
  return `${withCommas(value / (isSmall ? 2 ** 10 : 2 ** 20))} ${isSmall ? 'KiB' : 'MiB'}`
}

function withCommas(number: number): string {
  return number.toLocaleString('en')
}
