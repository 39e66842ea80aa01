import { EventEmitter } from 'node:events';

/** A request failed; `code` is the library's name without BATON_: "EINVAL". */
export class BatonError extends Error {
  readonly code: string;
}

/** This process does not lead in that epoch any more, or not yet. */
export class Lost extends BatonError {}

/** One term as leader. */
export interface Leadership {
  readonly election: string;
  /** The fencing token: it only grows. */
  readonly epoch: number;
  /** Whether this process may act now. */
  readonly isLeader: boolean;
  /** Until the lease ends if it is not renewed; 0 or less: it is over. */
  readonly remainingMs: number;
  /** Why it is over; null: it is not. */
  readonly reason: string | null;
  /** Aborted when the work should stop: leadership is to be handed over, or is lost. */
  readonly stopping: AbortSignal;
  /** Aborted when leadership is lost. */
  readonly signal: AbortSignal;
  /** Throws Lost unless this process may act now. */
  check(): void;
}

export interface Leader {
  readonly name: string;
  readonly epoch: number;
}

export interface Value {
  readonly key: string;
  /** null: the key is gone. */
  readonly data: Buffer | null;
  readonly revision: number;
}

export interface ConnectOptions {
  /** The agent's socket; else BATON_AGENT in the environment, the user's own agent's, or
   * /run/baton/agent.sock. */
  path?: string;
  /** This member's name; else the host's and the process id. */
  name?: string;
  /** JSON that the other members see. */
  metadata?: unknown;
}

export interface LeadOptions {
  priority?: number;
  /** Ends the waiting for leadership. */
  signal?: AbortSignal;
}

export interface CampaignOptions {
  priority?: number;
  /** Leadership is handed over when what it returns is settled. */
  onDrain?: (leadership: Leadership) => unknown;
}

/** Taking part in an election, until leave(). */
export class Election extends EventEmitter {
  private constructor();
  readonly name: string;
  /** The present term, if this process leads. */
  readonly leadership: Leadership | null;
  /** As this process knows it. */
  readonly leader: Leader | null;
  /** Waits until this process leads. */
  wait(options?: { signal?: AbortSignal }): Promise<Leadership>;
  /** Stops leading at once, hands over to `to` or the next in line, and goes on contending. */
  resign(options?: { to?: string; timeoutMs?: number }): Promise<void>;
  /** Says that the work has stopped: leadership is handed over, as was asked for. */
  drained(): Promise<void>;
  /** Stops leading at once, and takes part no more. */
  leave(options?: { timeoutMs?: number }): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
  on(event: 'acquired' | 'lost', listener: (leadership: Leadership) => void): this;
  on(event: 'leader', listener: (leader: Leader | null) => void): this;
  on(event: 'stopped', listener: (reason: string) => void): this;
}

/** A connection to the host's agent, for any number of elections. */
export class Client extends EventEmitter {
  private constructor();
  /** Rejects if the agent is not there, or refuses; a connection that is lost later comes back. */
  static connect(options?: ConnectOptions): Promise<Client>;
  readonly ready: boolean;
  campaign(election: string, options?: CampaignOptions): Promise<Election>;
  /** Leads while `work` runs, which begins when this process leads. */
  lead<T>(election: string, work: (leadership: Leadership) => T | Promise<T>): Promise<T>;
  lead<T>(election: string, options: LeadOptions,
          work: (leadership: Leadership) => T | Promise<T>): Promise<T>;
  members(election: string): Promise<Record<string, unknown>[]>;
  elections(): Promise<Record<string, unknown>[]>;
  setMetadata(metadata: unknown): Promise<void>;
  get(key: string): Promise<Value | null>;
  list(prefix?: string): Promise<Value[]>;
  /** Writes, or deletes (null), if the key is at `revision` (0: absent; undefined: any). Resolves to
   * the key's new revision, 0 after a deletion. */
  put(key: string, data: string | Uint8Array | null,
      options?: { revision?: number; lifetimeMs?: number }): Promise<number>;
  /** The returned function ends it. */
  watch(prefix: string, onChange: (values: Value[]) => void): Promise<() => void>;
  publish(channel: string, data: string | Uint8Array): Promise<void>;
  /** The returned function ends it. */
  subscribe(channel: string, onMessage: (data: Buffer) => void): Promise<() => void>;
  /** Stops leading at once, and ends the session: all is handed on. */
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
  on(event: 'disconnected', listener: (error: Error) => void): this;
}

/** Leads an election while `work` runs, which begins when this process leads; its end hands
 * leadership on. */
export function lead<T>(election: string,
                        work: (leadership: Leadership) => T | Promise<T>): Promise<T>;
export function lead<T>(election: string, options: ConnectOptions & LeadOptions,
                        work: (leadership: Leadership) => T | Promise<T>): Promise<T>;
