# Target: a MySQL or MariaDB server that the mysql client reaches (~/.my.cnf or its login path)
# Collects: SHOW GLOBAL STATUS and SHOW ENGINE INNODB STATUS every ten seconds; sizes and switches of SHOW GLOBAL VARIABLES
# Queries: SHOW FULL PROCESSLIST, which holds the texts of statements with their literals
# Tried: MariaDB 10.11; written for MySQL 5.7 to 8.4

my() { "$MY" -B -N "$@" 2>/dev/null; }

my_status() { # a row for each sample: the time, then every variable as a column
    names=""
    while going; do
        rows=$(my -e 'SHOW GLOBAL STATUS')
        if [ -z "$names" ]; then
            names=$(echo "$rows" | cut -f 1)
            printf 'now\t%s\n' "$(echo "$names" | tr '\n' '\t' | sed 's/\t$//')"
        fi
        printf '%s\t%s\n' "$(now)" "$(echo "$rows" | cut -f 2 | tr '\n' '\t' | sed 's/\t$//')"
        pause 10
    done >>"$DIR/mysql_status.tsv" 2>/dev/null
}

my_innodb() {
    while going; do
        my --raw -e 'SHOW ENGINE INNODB STATUS'
        pause 10
    done >>"$DIR/innodb_status.txt" 2>/dev/null
}

my_processlist() {
    while going; do
        echo "# $(now)"
        "$MY" -t -e 'SHOW FULL PROCESSLIST' 2>/dev/null
        pause "$INTERVAL"
    done >>"$DIR/processlist.txt" 2>/dev/null
}

mysql_begin() {
    MY=mysql
    have mysql || MY=mariadb
    have "$MY" || { missing "MySQL: neither mysql nor mariadb is here"; return; }
    [ -n "$(my -e 'SELECT 1')" ] || { missing "MySQL: the client reaches no server (see ~/.my.cnf)"; return; }
    my -e "SHOW GLOBAL VARIABLES WHERE Variable_name REGEXP '_size|_limit|_rate|_capacity|_method|_threads|_timeout|sync_binlog|flush_log|doublewrite|^version|read_only'" \
        >"$DIR/mysql_variables.tsv"
    background my_status
    background my_innodb
    if [ -n "@WITH_QUERIES@" ]; then background my_processlist; fi
}
