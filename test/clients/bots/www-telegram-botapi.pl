# WWW::Telegram::BotAPI, which has calls and no polling loop, so this program has the loop. A refused request ends the
# program; a network error or a temporary error does not. bot-program.ts describes the input and output of a bot program.
use strict;
use warnings;
use JSON::PP;
use WWW::Telegram::BotAPI;

$| = 1;
my $json = JSON::PP->new->canonical;
my $task = $json->decode($ENV{BOT_TASK});
my $parent = $$;
my $handling = 0;
my $told_to_stop = 0;

sub report { print $json->encode({@_}), "\n" }

# A poll blocks the process, so a child process waits for the end of the input and reports it with a signal.
$SIG{TERM} = sub { $told_to_stop = 1; exit 0 unless $handling };
my $child = fork // die "cannot fork: $!";
if ($child == 0) {
    1 while <STDIN>;
    kill TERM => $parent;
    exit 0;
}
END { kill KILL => $child if $child }

my $api = WWW::Telegram::BotAPI->new(
    token   => $task->{token},
    api_url => "$task->{apiRoot}/bot%s/%s",
);
# The timeout in the module's example is longer than that of its HTTP client.
$api->agent->inactivity_timeout(45) if $api->agent->can('inactivity_timeout');

my %asked = (timeout => 30);
$asked{allowed_updates} = $task->{allowedUpdates} if $task->{allowedUpdates};
report(ready => JSON::PP::true);
while (!$told_to_stop) {
    my $answer = eval { $api->getUpdates({%asked}) };
    if (!$answer) {
        my $error = $api->parse_error;
        my $code = $error->{code} // 500;
        if ($code < 500 && $code != 429) {
            report(failed => $error->{msg});
            exit 1;
        }
        sleep 1;
        next;
    }
    for my $update (@{ $answer->{result} }) {
        $asked{offset} = $update->{update_id} + 1;
        next unless my $message = $update->{message};
        $handling = 1;
        report(text => $message->{text});
        if ($message->{text} eq ($task->{holdsAt} // '')) { select undef, undef, undef, 0.05 until $told_to_stop }
        $handling = 0;
    }
}
