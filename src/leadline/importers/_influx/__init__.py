"""Parts of the importer of Telegraf's lines."""
