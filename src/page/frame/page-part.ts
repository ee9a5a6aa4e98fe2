/** A part of the page that shows data, each time that it is read. */
export interface PagePart<Data> {
  readonly root: HTMLElement
  readonly show: (data: Data) => void
}
