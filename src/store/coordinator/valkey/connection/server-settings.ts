/** How to speak to servers, wherever they are. */
export interface ServerSettings {
  readonly username: string;
  readonly password: string;
  readonly database: number;
  /** Undefined: without TLS; true: with the authorities of the system. */
  readonly tls: Bun.TLSOptions | true | undefined;
}
