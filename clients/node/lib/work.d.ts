import { Client } from './index.js';

/** The members of an item: docs/work.md. */
export interface ItemMembers {
  body?: string | Uint8Array;
  id?: string;
  /** A job ends; a service is to run always, in one place at a time. */
  kind?: 'job' | 'service';
  priority?: number;
  /** The slots that it takes. */
  weight?: number;
  /** Further attempts of a job after one that failed. */
  retries?: number;
  backoff_ms?: number;
  /** Of one attempt. */
  timeout_ms?: number;
  gpus?: number;
  memory_mib?: number;
  /** Labels that its worker must have. */
  needs?: string[];
  /** Items of the same key run on one worker. */
  together?: string;
  keys?: string[];
}

/** A text or bytes are a body. */
export type Item = string | Uint8Array | ItemMembers;

export interface Submission {
  readonly name: string;
  /** In the order of the items. */
  readonly ids: string[];
}

/** How an item ended. Without a result (it was cancelled, or it is no longer kept) epoch is 0. */
export interface Result {
  readonly id: string;
  readonly state: 'completed' | 'failed' | 'cancelled';
  readonly output: Buffer;
  readonly code: number;
  readonly epoch: number;
  readonly beganUnixMs: number;
  readonly endedUnixMs: number;
}

/** An item as the ledger has it. */
export interface Entry {
  readonly id: string;
  readonly state: 'idle' | 'processing' | 'completed' | 'failed' | 'cancelled';
  /** The worker that has the item; null: none has it. */
  readonly worker: string | null;
  readonly epoch: number;
  /** 0: none has begun. */
  readonly attempt: number;
  readonly failures: number;
  readonly sinceUnixMs: number;
}

/** An attempt at an item, which runs here. */
export interface Run {
  readonly id: string;
  readonly body: Buffer;
  /** Of this attempt, higher than that of each earlier one: goes with each write. */
  readonly epoch: number;
  /** From 1. */
  readonly attempt: number;
  readonly isService: boolean;
  /** What an earlier attempt saved last; null: nothing. */
  readonly checkpoint: Buffer | null;
  /** Aborted when the run is to end: the item was cancelled or moves, the worker leaves, or may not
   * act any more. */
  readonly stopping: AbortSignal;
  /** Whether the run may act now: compares the worker's lease with the clock. */
  readonly mayAct: boolean;
  /** Throws Lost unless the run may act now. Ask before each effect. Once it has thrown, what the
   * function returns is dropped: the item runs again, elsewhere or here. */
  check(): void;
  /** How much is done, 0 to 1, for the status. */
  progress(part: number): void;
  /** Stores what the item's next attempt gets as its checkpoint. Lost: a later attempt has stored
   * one, so this one is out of date. */
  save(data: string | Uint8Array): Promise<void>;
}

export interface WorkerOptions {
  /** How much weight of items it runs at once; 1. */
  slots?: number;
  gpus?: number;
  memoryMib?: number;
  labels?: string[];
  reportIntervalMs?: number;
}

/** This process as a worker of a pool. */
export interface Worker {
  readonly name: string;
  /** Takes nothing new; services move, and jobs end. What still runs after timeoutMs is stopped,
   * and goes on elsewhere: resolves to false, once it has ended here. */
  leave(options?: { timeoutMs?: number }): Promise<boolean>;
}

/** A pool by its name. For submitting and asking, no part in it is needed. A program in C, or
 * `baton worker`, leads it. */
export class Pool {
  constructor(client: Client, name: string);
  /** The same items by the same name are submitted once. EEXIST: other items were. */
  submit(items: Item[], options?: { name?: string }): Promise<Submission>;
  /** Ends the item for good: a run of it is stopped, and none begins. */
  cancel(id: string): Promise<void>;
  /** null: the item has not ended, or its result is no longer kept. */
  result(id: string): Promise<Result | null>;
  /** All that the ledger has, by their ids. What was submitted just now may not be there. */
  items(): Promise<Entry[]>;
  /** The worker gets nothing new, its services move, and its jobs go on: until undrain(), also if
   * it is started again. */
  drain(worker: string): Promise<void>;
  undrain(worker: string): Promise<void>;
  /** The leader's, as `baton work stats --json` prints it. Without a signal it rejects after 5
   * seconds: nobody leads. */
  status(options?: { signal?: AbortSignal }): Promise<Record<string, unknown>>;
  /** Waits until all have ended; their ends, in the order of the ids. */
  wait(ids: string[], options?: { signal?: AbortSignal }): Promise<Result[]>;
  /** Each item is a call of work(run): what it returns is the output, what it throws a failure. */
  worker(name: string, work: (run: Run) => unknown, options?: WorkerOptions): Promise<Worker>;
}
