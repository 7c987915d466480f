/** The server plays, on async functions. */
import { testServer } from "../src/index.js";
import { puppetDrive, puppetSubject } from "./puppets.js";

testServer({ name: "async functions behind a server", create: puppetSubject, drive: puppetDrive });
