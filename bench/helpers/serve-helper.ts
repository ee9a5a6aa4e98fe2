/** The child's side of `HelperProcess`: replies to each message with the result of the handler, and ends with its parent. */
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
