package tanist.client;

import com.alibaba.fastjson.JSON;
import java.util.List;
import org.apache.rocketmq.tools.command.MQAdminStartup;

/**
 * Runs RocketMQ's own operator command several times in one process, which costs far less than several processes.
 *
 * <p>The only argument is a JSON array with the arguments of each run. A form feed ends what each run prints.
 */
public final class OperatorMain {
    private OperatorMain() {
    }

    public static void main(String[] arguments) {
        for (Object run : JSON.parseArray(arguments[0])) {
            List<String> runArguments = JSON.parseArray(run.toString(), String.class);
            MQAdminStartup.main(runArguments.toArray(new String[0]));
            System.out.print('\f');
        }
        System.out.flush();
        // Some commands leave threads behind that would keep the process alive.
        Runtime.getRuntime().halt(0);
    }
}
