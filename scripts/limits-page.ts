/**
 * Generates docs/reference/limits.md: the bounds that people outside can reach, by subject. A sentence of the page is the
 * first one of the constant's comment, and the value is the constant's, so both are told once.
 */
import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { allLimits } from './all-limits.ts'

const source = fileURLToPath(new URL('../../src/', import.meta.url))

const head = `# Limits

<!-- Generated from the constants of src by scripts/generate-docs.ts: change them there. -->

This page lists the fixed bounds that bots, producers, endpoints and strangers can reach. The sections in brackets are those
of [protocol.md](../use/protocol.md), which says what happens at a bound. Bounds that an operator may change are
[options](options.md). The constants of the other bounds stand in the \`limits.ts\` files of \`src/\`, each with its reason.
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
    webhookResponseRawBytesMax webhookInterimResponsesMax webhookErrorLengthMax webhookRetryCapMsMin
    webhookRetryCapMsMax webhookRetryAfterSMax webhookRecentSuccessMs webhookFastOpeningsMax webhookFastOpeningsMs
    webhookSlowOpeningMs webhookSlowConnectionsMax webhookResolvedForMs webhookCertificatesMax
    webhookCertificatesBytesMax webhookCertificateRsaBitsMax webhookTlsSessionsMax webhookReplyBytesMax
    webhookRepliesPerBotMax upstreamCallsPerBotMax signingKeysMax signingKeyOverlapSMax deadLetterLifeMs
    deadLettersMax deadLetterBytesMax webhookAttemptsKept webhookHealthRecentMs`,
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
    accessKeysPerFamilyMax accessKeyBotsMax endedSessionsPerKeyMax`,
  ],
  ['The end of the server (§10)', 'drainMs forwardedDrainMs'],
]

/** @returns the complete text of docs/reference/limits.md */
export function limitsPage(): string {
  const sentences = sentencesOfConstants()
  const values = new Map<string, unknown>(Object.entries(allLimits))
  return `${head}${groups.map(([title, names]) => list(title, names.split(/\s+/))).join('')}`

  function list(title: string, names: readonly string[]): string {
    const rows = names.map((name) => {
      const sentence = sentences.get(name)
      assert(
        sentence !== undefined,
        `${name}: expected a comment of one sentence above the constant`,
      )
      return `- \`${name}\` ${shownLimit(name, values.get(name))}: ${sentence}\n`
    })
    return `\n## ${title}\n\n${rows.join('')}`
  }
}

/** Returns the first sentence of the comment above each exported constant of src, by the constant's name. */
function sentencesOfConstants(): ReadonlyMap<string, string> {
  const files = readdirSync(source, { recursive: true, encoding: 'utf8' })
  const commented = /\/\*\*((?:(?!\*\/)[\s\S])*)\*\/\nexport const (\w+)/g
  return new Map(
    files
      .filter((file) => file.endsWith('.ts'))
      .flatMap((file) =>
        [...readFileSync(join(source, file), 'utf8').matchAll(commented)].map(
          ([, comment = '', name = '']) => [name, firstSentence(comment)],
        ),
      ),
  )
}

/** What follows a colon is the reason, which stays with the constant. */
function firstSentence(comment: string): string {
  const text = comment.replaceAll(/\s*\n \*\s*/g, ' ').trim()
  const [sentence] = text.split(/[.:](?:\s|$)/)
  return `${sentence}.`
}

/** A limit with its unit, which its name contains. */
export function shownLimit(name: string, value: unknown): string {
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
