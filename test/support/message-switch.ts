import pg from "pg";

/**
 * Drops the messages of the gateways on a database without a word: their connections stay, and
 * nobody hears anything.
 */
export class MessageSwitch implements AsyncDisposable {
  readonly #client: pg.Client;
  /** Messages that reached somebody. */
  heard = 0;

  private constructor(client: pg.Client) {
    this.#client = client;
    client.on("notification", () => void (this.heard += 1));
    // The server may end first.
    client.on("error", () => undefined);
  }

  /** Before the first gateway connects to the database. */
  static async install(url: string): Promise<MessageSwitch> {
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    const database = new URL(url).pathname.slice(1);
    // A name of a system's function is looked up in the order of the path.
    await client.query(`
      CREATE SCHEMA test_messages;
      CREATE TABLE test_messages.dropping (since timestamptz);
      CREATE FUNCTION test_messages.pg_notify(channel text, message text) RETURNS void AS $$
        SELECT pg_catalog.pg_notify(channel, message)
          WHERE NOT EXISTS (SELECT FROM test_messages.dropping)
      $$ LANGUAGE sql;
      ALTER DATABASE ${database} SET search_path = public, test_messages, pg_catalog;
      LISTEN sluice_keys`);
    return new MessageSwitch(client);
  }

  /** Resolves once no message is under way. */
  async drop(): Promise<void> {
    await this.#client.query("INSERT INTO test_messages.dropping VALUES (now())");
    for (let before = -1; before !== this.heard; await Bun.sleep(200)) before = this.heard;
  }

  async restore(): Promise<void> {
    await this.#client.query("DELETE FROM test_messages.dropping");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#client.end();
  }
}
