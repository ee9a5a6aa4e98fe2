/** The child's side of `HelperProcess`: answers each message with what the handler returns, and ends with its parent. */
// oxlint-disable-next-line no-unnecessary-type-parameters -- so that a handler names the questions it answers
export function serveHelper<Question>(answer: (question: Question) => Promise<unknown>): void {
  process.on('disconnect', () => process.exit(0))
  process.on('message', (question: Question) => {
    answer(question).then(
      (value) => process.send?.({ value }),
      (error: unknown) =>
        process.send?.({ error: error instanceof Error ? error.stack : 'failed' }),
    )
  })
}
