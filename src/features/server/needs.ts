/** The calls about the server that other features make. */
import { serverOperations } from './server-operations.ts'

const { listUpdateTypes } = serverOperations

export const needs = { listUpdateTypes }
