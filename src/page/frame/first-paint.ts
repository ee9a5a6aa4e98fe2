/** Runs before the page is painted, so that the page never flashes in another theme than the chosen one. */
import { applyDisplay } from './display-choices.ts'

applyDisplay()
