/**
 * Sends the spans of a worker to an OTLP endpoint, in a thread that loads the library of OpenTelemetry (workers/export-spans.ts).
 *
 *   report -> waiting, at most `queueMax` --every `delayMs`, or a batch is full--> thread --> endpoint
 *
 * One batch is under way at a time. While an endpoint hangs, further spans wait, then they are dropped and counted: nothing
 * else waits for it. The thread starts with the first sampled span.
 */
import type { Timer } from '../../kit/clock.ts'
import type { OtlpSettings } from '../../config/otlp-settings.ts'
import { entryFiles } from '../../entry-files.ts'
import { HelperThread } from '../../kit/helper-thread.ts'
import type { Surroundings } from '../../kit/surroundings.ts'
import type { Span } from '../../kit/tracing/tracer.ts'

/** What the thread gets. */
export interface SpanBatch {
  readonly protocol: OtlpSettings['protocol']
  readonly spans: readonly Span[]
}

/** The thread ends after this idle time. Chosen: it takes some 20 MB, and traces come at any time. */
const exportIdleMs = 60_000
/** A worker that ends waits this long for its last spans. Chosen: below the time that a reload waits for. */
export const lastSpansMs = 1_000
/** A failing endpoint is named in the log once in this time. */
const warnAgainMs = 60_000

export class SpanExporter {
  readonly #surroundings: Pick<Surroundings, 'clock' | 'counters' | 'log'>
  readonly #settings: OtlpSettings
  readonly #thread: HelperThread<SpanBatch, string | true>
  readonly #send: (batch: SpanBatch) => Promise<string | undefined>
  #waiting: Span[] = []
  #timer: Timer | undefined
  #sending: Promise<void> | undefined
  #warnedMs = Number.NEGATIVE_INFINITY
  #isClosed = false

  constructor(
    surroundings: Pick<Surroundings, 'clock' | 'counters' | 'log'>,
    settings: OtlpSettings,
    send?: (batch: SpanBatch) => Promise<string | undefined>,
  ) {
    this.#surroundings = surroundings
    this.#settings = settings
    this.#thread = new HelperThread({
      filename: entryFiles.exportSpans.href,
      pendingMax: 1,
      idleMs: exportIdleMs,
      onFailure: (error) => this.#warn(String(error)),
    })
    this.#send = send ?? ((batch) => this.#sendInThread(batch))
  }

  /** Takes a span that has ended. */
  readonly report = (span: Span): void => {
    if (this.#isClosed || this.#waiting.length >= this.#settings.queueMax) {
      this.#surroundings.counters.add('trace_spans_dropped', 1)
      return
    }
    this.#waiting.push(span)
    this.#flushSoon()
  }

  /** Sends what waits, for up to `lastSpansMs`, and ends the thread. */
  async close(): Promise<void> {
    this.#isClosed = true
    await new Promise<void>((resolve) => {
      const timer = this.#surroundings.clock.after(lastSpansMs, resolve)
      void this.#sendAll().finally(() => {
        timer.cancel()
        resolve()
      })
    })
    this.#surroundings.counters.add('trace_spans_dropped', this.#waiting.length)
    this.#waiting = []
    this.#timer?.cancel()
    await this.#thread.destroy()
  }

  async #sendAll(): Promise<void> {
    for (;;) {
      if (this.#sending === undefined && this.#waiting.length === 0) return
      this.#flush()
      await this.#sending
    }
  }

  /** At once if a batch is full. */
  #flushSoon(): void {
    if (this.#waiting.length >= this.#settings.batchMax) this.#flush()
    else if (this.#waiting.length > 0) {
      this.#timer ??= this.#surroundings.clock.after(this.#settings.delayMs, () => this.#flush())
    }
  }

  #flush(): void {
    this.#timer?.cancel()
    this.#timer = undefined
    if (this.#sending !== undefined || this.#waiting.length === 0) return
    this.#sending = this.#sendOne().finally(() => {
      this.#sending = undefined
      this.#flushSoon()
    })
  }

  async #sendOne(): Promise<void> {
    const spans = this.#waiting.splice(0, this.#settings.batchMax)
    const error = await this.#send({ protocol: this.#settings.protocol, spans })
    if (error === undefined) this.#surroundings.counters.add('trace_spans_exported', spans.length)
    else {
      this.#surroundings.counters.add('trace_spans_dropped', spans.length)
      this.#warn(error)
    }
  }

  async #sendInThread(batch: SpanBatch): Promise<string | undefined> {
    const result = await this.#thread.run(() => batch)
    return result === true ? undefined : (result ?? 'the thread that sends spans failed')
  }

  #warn(error: string): void {
    const nowMs = this.#surroundings.clock.monotonicMs()
    if (nowMs - this.#warnedMs < warnAgainMs) return
    this.#warnedMs = nowMs
    this.#surroundings.log.warn({ error }, 'spans were not sent to the OTLP endpoint and are lost')
  }
}
