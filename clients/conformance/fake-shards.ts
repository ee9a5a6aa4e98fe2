/** `GET /v1/shards` at the fake server, and the rule on which stream the pairs of a bot may come. */
import type { ServerResponse } from 'node:http'
import { slotOfBot } from '../../src/process/shard-map.ts'
import type { Scenario, ShardsMap } from './scenario.ts'

/** Answers with a map, or as a scenario says, and finds streams that do not fit it. */
export class FakeShards {
  readonly #scenario: Scenario
  readonly #complaints: string[]
  /** How often a client has asked. */
  looks = 0

  /** Nothing was asked yet. */
  constructor(scenario: Scenario, complaints: string[]) {
    this.#scenario = scenario
    this.#complaints = complaints
  }

  /** Answers the next question. */
  answer(response: ServerResponse): void {
    this.looks += 1
    const answer = this.#scenario.shardsAction(this.looks)
    if (answer === 'nothing') return
    const { status, body } = answer
    response.writeHead(status, { 'content-type': 'application/json' })
    response.end(typeof body === 'string' ? body : JSON.stringify(body))
  }

  /** Complains about a stream with a hint that it should not have. */
  checkStream(hint: string | undefined): void {
    const { hints } = this.#scenario
    if (hints === 'none' && hint !== undefined) this.#complain(`a stream with shard=${hint}`)
    if (typeof hints !== 'object' || hint === undefined) return
    if (!hints.groups.some(([first]) => hint === `${first}`)) {
      this.#complain(`a stream with shard=${hint}, expected the first shard of a group`)
    }
  }

  /** Complains about a pair that came on the stream of another group. */
  checkPair(bot: number, hint: string | undefined): void {
    const { hints } = this.#scenario
    if (typeof hints !== 'object') return
    const expected = firstOfGroup(hints, bot)
    if (hint !== expected) this.#complain(`bot ${bot} with shard=${hint}, expected ${expected}`)
  }

  #complain(text: string): void {
    if (!this.#complaints.includes(text)) this.#complaints.push(text)
  }
}

/** The hint with which the pairs of a bot come. */
function firstOfGroup({ shards, groups }: ShardsMap, bot: number): string | undefined {
  const shard = slotOfBot(bot) % shards
  const first = groups.find((group) => group.includes(shard))?.[0]
  return first === undefined ? undefined : `${first}`
}
