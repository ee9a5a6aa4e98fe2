/** What must hold for every response, and for their number. */
import { messageOf } from '../../src/kit/errors.ts'
import { assertDocumented } from '../support/server/documented-response.ts'
import type { WireAnswer } from './answer-reader.ts'
import type { Conversation, WireCase } from './wire-case.ts'

/** Returns what is wrong, as text; undefined if everything is right. */
export function complaintAbout(
  conversation: Conversation,
  answers: readonly WireAnswer[],
  isRepeated: boolean,
): string | undefined {
  const { cases, listener } = conversation
  for (const [nth, each] of cases.entries()) {
    const answer = answers[nth]
    if (answer === undefined) {
      if (each.expected.kind !== 'answer' || mayEndEarly(conversation)) continue
      return `no answer to case ${nth}`
    }
    const isEnd = endsEarly(answer, conversation)
    const isReplaced = isEnd && each.expected.kind === 'answer' && answer.status >= 400
    const fault = isReplaced
      ? bareFault(answer, each, listener)
      : (faultOf(answer, { listener, each, isRepeated }) ??
        undocumentedFault(answer, each, listener))
    if (fault !== undefined) return `case ${nth}: ${told(fault, answer)}`
    if (isEnd) return undefined
  }
  return complaintAboutMore(conversation, answers.slice(cases.length))
}

/**
 * The refusal of broken bytes replaces responses that are not sent yet, and ends the connection. So does the response
 * to a request that offers another protocol.
 */
function mayEndEarly(conversation: Conversation): boolean {
  if (conversation.listener === 'bot' && conversation.finish === 'half-close at once') return true
  if (conversation.delivery.kind === 'in turn') return false
  return conversation.cases.at(-1)?.expected.kind !== 'answer' || hasOffer(conversation)
}

function hasOffer({ cases }: Conversation): boolean {
  return cases.some(({ bytes }) => /^connection: upgrade/im.test(bytes.toString('latin1')))
}

/**
 * Fastify accepts no further request after a body that it could not read, nor does node:http after an offer of another
 * protocol. The responses announce this.
 */
function endsEarly({ headers }: WireAnswer, conversation: Conversation): boolean {
  if (headers.get('connection') !== 'close') return false
  return conversation.listener === 'private' || hasOffer(conversation) || mayEndEarly(conversation)
}

/** Changed bytes may form two requests; other bytes may not. */
function complaintAboutMore(
  { cases, listener }: Conversation,
  more: readonly WireAnswer[],
): string | undefined {
  const [first] = more
  if (first === undefined) return undefined
  if (cases.at(-1)?.expected.kind !== 'anything') return told('one answer too many', first)
  for (const answer of more) {
    const fault = formFault(answer, listener)
    if (fault !== undefined) return told(`a further answer: ${fault}`, answer)
  }
  return undefined
}

function told(fault: string, { status, body }: WireAnswer): string {
  return `${fault}: ${status} ${body.slice(0, 500)}`
}

function faultOf(
  answer: WireAnswer,
  context: { listener: Conversation['listener']; each: WireCase; isRepeated: boolean },
): string | undefined {
  const { listener, each, isRepeated } = context
  const { expected } = each
  if (expected.kind === 'refused' && answer.status < 400) return 'should have been refused'
  if (expected.kind === 'answer' && expected.exactly !== undefined) {
    const { status, body, bodyIfRepeated } = expected.exactly
    const isBodyless = each.isHead === true && answer.body === ''
    const isAsKnown =
      isBodyless || answer.body === body || (isRepeated && answer.body === bodyIfRepeated)
    if (answer.status !== status || !isAsKnown) return `expected ${status} ${body.slice(0, 300)}`
  }
  return bareFault(answer, each, listener) ?? toldFault(answer, each)
}

/** The response to a complete request must be one that docs/reference/openapi.json describes. */
function undocumentedFault(
  answer: WireAnswer,
  { bytes, expected }: WireCase,
  listener: Conversation['listener'],
): string | undefined {
  if (listener === 'bot') return undefined
  const line = /^([A-Z]+) (\S+) HTTP/.exec(bytes.toString('latin1', 0, 4_096))
  if (expected.kind !== 'answer' || line === null) return undefined
  const [, method = '', target = ''] = line
  const path = pathOf(target)
  const headers = Object.fromEntries(answer.headers)
  try {
    assertDocumented({ method, path }, { status: answer.status, headers, text: answer.body })
    return undefined
  } catch (error) {
    return messageOf(error)
  }
}

/** Returns the path as the server reads it: decoded, and without the host that the absolute form has in front. */
function pathOf(target: string): string {
  const path = target.replace(/^https?:\/\/[^/?#]*/i, '').split(/[?#]/, 1)[0] ?? ''
  try {
    return decodeURI(path)
  } catch {
    return path
  }
}

function toldFault({ status, body }: WireAnswer, { expected }: WireCase): string | undefined {
  if (expected.kind !== 'answer' || expected.told === undefined) return undefined
  const codes = expected.told.codes.join()
  return status === expected.told.status && codesIn(body) === codes
    ? undefined
    : `expected ${codes}`
}

/** Returns what is wrong with a response to any request. */
function bareFault(
  answer: WireAnswer,
  { isHead = false }: WireCase,
  listener: Conversation['listener'],
): string | undefined {
  return isHead ? statusFault(answer) : formFault(answer, listener)
}

/** Returns the result of each pair. */
function codesIn(body: string): string {
  const lines = body.split('\n').filter((line) => line !== '')
  return lines.map((line) => codeIn(parsed(line))).join()
}

function codeIn(result: unknown): string {
  if (!isObject(result)) return 'no object'
  const { error, filtered } = result
  if (filtered === true) return 'filtered'
  return isObject(error) ? String(error['code']) : 'no error'
}

function statusFault({ status }: WireAnswer): string | undefined {
  return status === 200 || (status >= 400 && status < 500) ? undefined : 'a status that no case has'
}

function formFault(answer: WireAnswer, listener: Conversation['listener']): string | undefined {
  const fault = statusFault(answer)
  if (fault !== undefined) return fault
  if ((answer.status === 429) !== answer.headers.has('retry-after')) return 'Retry-After and 429'
  const type = answer.headers.get('content-type') ?? ''
  if (listener === 'bot')
    return type === 'application/json' ? envelopeFault(answer) : `type ${type}`
  if (answer.status !== 200) return privateFault(answer, type)
  if (type === 'application/x-ndjson') {
    const lines = answer.body.split('\n')
    return lines.pop() === '' && lines.every((line) => isObject(parsed(line)))
      ? undefined
      : 'no lines'
  }
  if (type.startsWith('text/plain')) return undefined
  return isObject(parsed(answer.body)) ? undefined : 'no JSON'
}

function envelopeFault({ status, body }: WireAnswer): string | undefined {
  const envelope = parsed(body)
  if (!isObject(envelope)) return 'no envelope'
  const { ok, ...fields } = envelope
  if (ok === true && status === 200) return resultFault(fields)
  return ok === false ? refusalFault(fields, status) : 'no envelope'
}

type Fields = Readonly<Record<string, unknown>>

function resultFault({ result, description = '', ...more }: Fields): string | undefined {
  const isGood = result !== undefined && typeof description === 'string'
  return isGood && isEmpty(more) ? undefined : 'no envelope of a result'
}

function refusalFault(
  { error_code: code, description, parameters, ...more }: Fields,
  status: number,
): string | undefined {
  const isText = typeof description === 'string' && description !== ''
  if (code !== status || !isText || !isEmpty(more)) return 'no envelope of an error'
  if (parameters === undefined) return status === 429 ? 'no parameters' : undefined
  const keys = isObject(parameters) ? Object.keys(parameters) : []
  return keys.join() === 'retry_after' ? undefined : 'odd parameters'
}

function isEmpty(fields: Fields): boolean {
  return Object.keys(fields).length === 0
}

function privateFault({ body }: WireAnswer, type: string): string | undefined {
  if (!type.startsWith('application/json')) return `type ${type}`
  const content = parsed(body)
  const error = isObject(content) ? content['error'] : undefined
  const isGood =
    isObject(error) && typeof error['code'] === 'string' && typeof error['message'] === 'string'
  return isGood ? undefined : 'no error of the private listener'
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function isObject(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
